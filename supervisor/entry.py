"""The start of the supervisor: arguments, settings and the journal's lock, then one run of the service."""

import argparse
import asyncio
import faulthandler
import os
import sys
from contextlib import suppress
from typing import NoReturn

import uvloop

from ipc.errors import WireError
from ipc.interpreter import WORKING_DIRECTORY
from ipc.places import add_options, chosen_places, make_private
from supervisor.app import App
from supervisor.config.settings import load
from supervisor.config.toml_file import SettingsError
from supervisor.handoff.handover import Handover, arrive, leave
from supervisor.journal.errors import JournalError, JournalLocked
from supervisor.journal.journal import Journal
from supervisor.processes.cells import own_cgroup

# The exit codes that scripts and systemd rely on.
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
        if arguments.handover:
            handed, lock = arrive(arguments.handover)
            journal = Journal.take_over(places.journal, lock)
        else:
            journal = Journal.open(places.journal, places.lock)
    except (SettingsError, WireError) as error:
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
        leave(leaving, places.arguments, journal.hand_over())
    # The journal is closed and every child is gone: an orderly interpreter shutdown could only hang.
    os._exit(status)


def _leave(status: int, fault: str, hint: str) -> NoReturn:
    sys.exit(_complain(status, fault, hint))


def _complain(status: int, fault: str, hint: str) -> int:
    print(f"hermes-supervisor: {fault}\n  hint: {hint}", file=sys.stderr, flush=True)
    return status
