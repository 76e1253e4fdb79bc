"""`hermesctl start`: returns when the supervisor is ready, or with its last output and its exit code."""

import os
import subprocess
import time
from pathlib import Path

import click

from hermesctl.client import listener_pid
from hermesctl.command_result import acting, tell
from hermesctl.commands.status import console_of, read_status
from hermesctl.errors import CommandError, NotRunning
from hermesctl.exit_codes import Exit
from hermesctl.parameters import seconds
from hermesctl.process import Ending
from hermesctl.render import one_line, plain
from hermesctl.systemd import installed_unit
from hermesctl.waiting import Waiting
from ipc import interpreter
from ipc.places import Places, is_listening, make_private
from ipc.time_budgets import START_SECONDS

# Interval of checks on a starting supervisor; its end is noticed at once.
_LOOK_SECONDS = 0.05
# A gateway that needs longer is not waited for; `status` shows its address later.
_CONSOLE_SECONDS = 5.0
# The last output of a process that ended: as much as fits a screen.
_LAST_LINES = 12
_LAST_BYTES = 16 * 1024
_EXAMPLES = """\b
Examples:
  hermesctl start
  hermesctl --home ./trial start --timeout 300
  hermesctl start --json
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--timeout",
    "timeout_seconds",
    **seconds(0.1),
    default=START_SECONDS,
    show_default=True,
    help="How long to wait for it to be ready.",
)
@acting
@click.pass_obj
def start(places: Places, timeout_seconds: float, form: str) -> None:
    """Start the supervisor in the background and return when it is ready."""
    if (pid := listener_pid(places)) is not None:
        tell(form, f"already running, pid {pid}", pid=pid, started=False)
    elif (unit := installed_unit(places)) is not None:
        waiting = Waiting()
        unit.change("start", lambda: waiting.say(_missing(places) or "waiting for systemd"))
        pid = int(unit.pid())
        sentence = f"started by systemd, pid {pid}; hermesctl logs shows its log"
        tell(form, sentence, pid=pid, started=True, systemd=True)
    else:
        pid = launch(places, timeout_seconds)
        tell(form, started(places, pid), pid=pid, started=True, log=str(log_of(places)))
    if form != "json" and (address := _console(places)):
        print(f"open {one_line(address)} and enter the code of `hermesctl pair`", flush=True)


def _console(places: Places) -> str:
    """The address of the console; its service may need a moment longer than the supervisor."""
    deadline = time.monotonic() + _CONSOLE_SECONDS
    while True:
        try:
            row = read_status(places)
        except NotRunning:
            return ""
        is_starting = (row.get("gateway") or {}).get("state") in ("waiting", "starting")
        if not is_starting or time.monotonic() > deadline:
            return console_of(row)
        time.sleep(_LOOK_SECONDS)


def started(places: Places, pid: int) -> str:
    return f"started, pid {pid}; the log is {log_of(places)}"


def log_of(places: Places) -> Path:
    """The log file of a supervisor without systemd."""
    return places.logs / "supervisor.log"


def launch(places: Places, timeout_seconds: float) -> int:
    """Starts a supervisor in the background, without systemd; returns its pid, once it is ready."""
    make_private(places.state)
    make_private(places.logs)
    log = log_of(places)
    born_at = log.stat().st_size if log.exists() else 0
    process = _spawn(places, log)
    ending = Ending(process.pid)
    try:
        _wait_until_ready(places, process, ending, timeout_seconds, log, born_at)
    finally:
        ending.close()
    return process.pid


def _spawn(places: Places, log: Path) -> "subprocess.Popen[bytes]":
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            interpreter.command("supervisor", *places.arguments),
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            cwd=interpreter.WORKING_DIRECTORY,
            env=interpreter.without_code(os.environ),
        )
    finally:
        os.close(descriptor)


def _wait_until_ready(
    places: Places,
    process: "subprocess.Popen[bytes]",
    ending: Ending,
    timeout_seconds: float,
    log: Path,
    born_at: int,
) -> None:
    waiting = Waiting()
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if ending.within(_LOOK_SECONDS):
            raise _ended_early(process.wait(), log, born_at)
        what = _missing(places)
        if what is None:
            return
        waiting.say(what)
    raise NotRunning(
        f"the supervisor (pid {process.pid}) is not ready after {timeout_seconds:g} s",
        f"hermesctl status shows how far it is; the log is {log}",
    )


def _missing(places: Places) -> str | None:
    """Returns the reason why the supervisor is not ready; None once it is."""
    if not is_listening(places.control):
        return "waiting for the supervisor to open its socket"
    try:
        row = read_status(places)
    except NotRunning:
        return "waiting for the supervisor to answer"
    if row.get("state") == "ready":
        return None
    return f"{plain(row.get('state'))}: model {plain(row.get('model'))}"


def _ended_early(status: int, log: Path, born_at: int) -> CommandError:
    """Uses the supervisor's own exit code where it chose one, so that 75 and 78 reach scripts."""
    how = f"exit code {status}" if status >= 0 else f"signal {-status}"
    words = "".join(f"\n    {line}" for line in _last_lines(log, born_at))
    return CommandError(
        f"the supervisor ended while it started ({how}){words}",
        f"the whole log is {log}",
        status if status > 0 else Exit.BUG,
    )


def _last_lines(log: Path, born_at: int) -> list[str]:
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(born_at, end - _LAST_BYTES))
        text = file.read(_LAST_BYTES).decode(errors="replace")
    return text.splitlines()[-_LAST_LINES:]
