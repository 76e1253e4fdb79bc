"""The start of the supervisor: arguments, settings and the journal's lock, then one run of the service."""

import argparse
import asyncio
import faulthandler
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

import msgspec
import uvloop

from ipc.errors import WireError
from ipc.interpreter import WORKING_DIRECTORY
from ipc.places import add_options, chosen_places, make_private
from supervisor.app import App
from supervisor.config.settings import load
from supervisor.config.toml_file import SettingsError
from supervisor.handoff.handover import Handover, arrive, leave
from supervisor.journal.errors import JournalError, JournalLocked, JournalUnfit, JournalUnreachable
from supervisor.journal.opening import open_chosen
from supervisor.processes.cells import own_cgroup
from supervisor.telemetry import systemd_notify as notify

# The exit codes that scripts and systemd rely on.
# Between two attempts to reach the server of the journal at the start.
_WAIT_SECONDS = 2.0
_EXIT_BUG, _EXIT_LOCKED, _EXIT_SETTINGS = 1, 75, 78


def main() -> NoReturn:
    parser = argparse.ArgumentParser(
        prog="hermes-supervisor", description="Run the supervisor in the foreground."
    )
    add_options(parser)
    parser.add_argument("--check", action="store_true", help="report whether it would start, and exit")
    parser.add_argument("--handover", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    handed: Handover | None = None
    leaving: Handover | None = None
    # systemd's watchdog ends a stuck supervisor with SIGABRT: its log then shows where it was stuck.
    faulthandler.enable()
    try:
        places = chosen_places(arguments)
        # Leave the caller's folder: it can be unmounted, and nothing is imported from it.
        os.chdir(WORKING_DIRECTORY)
        settings = load(places.settings_file)
        if arguments.check:
            sys.exit(0)
        own_cgroup.settle()
        make_private(places.state)
        continued: tuple[int, str] | None = None
        if arguments.handover:
            handed, lock = arrive(arguments.handover)
            continued = lock, handed.life
        journal = open_chosen(places, settings, continued, _wait_for_server)
    except (SettingsError, WireError, JournalUnfit) as error:
        _leave(_EXIT_SETTINGS, error.fault, error.hint)
    except JournalLocked as error:
        _leave(_EXIT_LOCKED, error.fault, error.hint)
    except JournalError as error:
        _leave(_EXIT_BUG, error.fault, error.hint)
    app = App(places, settings, journal, handed=handed)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            status = runner.run(app.run())
            leaving = app.leaving
        except (SettingsError, WireError) as error:
            status = _complain(_EXIT_SETTINGS, error.fault, error.hint)
        except JournalError as error:
            status = _complain(_EXIT_BUG, error.fault, error.hint)
    # A failed write to the log, as on a full disk, does not change how this process ends.
    with suppress(OSError):
        sys.stderr.flush()
    if leaving is not None:
        lock, life = journal.hand_over()
        leave(msgspec.structs.replace(leaving, life=life), places.arguments, lock)
    # The journal is closed and every child is gone: an orderly interpreter shutdown could only hang.
    os._exit(status)


def _wait_for_server(error: JournalUnreachable) -> None:
    """Say why nothing begins, where systemd and a person look, and let some time pass."""
    notify.waiting(error.fault, _WAIT_SECONDS)
    print(f"hermes-supervisor: waits: {error.fault}", file=sys.stderr, flush=True)
    threading.Event().wait(_WAIT_SECONDS)


def _leave(status: int, fault: str, hint: str) -> NoReturn:
    sys.exit(_complain(status, fault, hint))


def _complain(status: int, fault: str, hint: str) -> int:
    print(f"hermes-supervisor: {fault}\n  hint: {hint}", file=sys.stderr, flush=True)
    return status
