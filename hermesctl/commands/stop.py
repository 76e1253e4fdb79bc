"""`hermesctl stop`: asks the supervisor to end, reports what it waits for, kills it after a time limit."""

import time
from dataclasses import dataclass

import click

from hermesctl.client import Client, listener_pid
from hermesctl.command_result import acting, tell
from hermesctl.commands.status import read_status
from hermesctl.draining import drain_and_wait, drain_seconds, named
from hermesctl.errors import CommandError, NotRunning
from hermesctl.exit_codes import Exit
from hermesctl.parameters import seconds
from hermesctl.process import Ending
from hermesctl.render import aside
from hermesctl.systemd import installed_unit
from hermesctl.waiting import Waiting
from ipc.messages import Done, Stop
from ipc.places import Places
from ipc.time_budgets import STOP_PATIENCE_SECONDS, STOP_SECONDS

# Interval of checks on the remaining work; the end itself is noticed at once.
_LOOK_SECONDS = 0.5
# A supervisor that does not answer by then is not asked again: its process shows whether it runs.
_ANSWER_SECONDS = 1.0
# A killed process is gone in milliseconds; one that holds much memory takes a little longer.
_KILL_SECONDS = 5.0
# Without a number the value of hermes.toml applies.
_BY_SETTINGS = -1.0
_EXAMPLES = """\b
Examples:
  hermesctl stop
  hermesctl stop --timeout 60
  hermesctl stop --drain
  hermesctl stop --drain 300
  hermesctl stop --json
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--timeout",
    "timeout_seconds",
    **seconds(0.1),
    default=STOP_PATIENCE_SECONDS,
    show_default=True,
    help="How long to wait for its end before it is killed.",
)
@click.option(
    "--drain",
    "drain",
    is_flag=False,
    flag_value=_BY_SETTINGS,
    **seconds(0, metavar="[SECONDS]"),
    help="Let running turns finish first, for SECONDS or as long as [turns] drain says.",
)
@acting
@click.pass_obj
def stop(places: Places, timeout_seconds: float, drain: float | None, form: str) -> None:
    """Stop the supervisor and return when it has ended.

    Running turns are resumed at the next start. The supervisor kills all it has started at once and ends
    within a few seconds, whatever workers do; one that does not is killed.
    """
    left: list[str] = []
    if drain is not None and listener_pid(places) is not None:
        left = _drain_first(places, drain)
    unit = installed_unit(places)
    if unit is None or unit.properties("ActiveState").get("ActiveState") == "inactive":
        ended = end(places, timeout_seconds)
        tell(
            form, ended.sentence, pid=ended.pid, stopped=ended.pid is not None, killed=ended.killed, left=left
        )
    else:
        pid = int(unit.pid())
        unit.change("stop", Telling(places).say)
        tell(form, f"stopped by systemd, pid {pid}", pid=pid, stopped=True, systemd=True, left=left)


@dataclass(frozen=True)
class Ended:
    """The result of a stop: the supervisor that ended, if one ran, and whether it had to be killed."""

    sentence: str
    pid: int | None = None
    killed: bool = False


def end(places: Places, timeout_seconds: float) -> Ended:
    """Ends the supervisor that listens here, by request or by force."""
    pid = listener_pid(places)
    if pid is None:
        return Ended("not running")
    ending = Ending(pid)
    try:
        deadline = time.monotonic() + timeout_seconds
        _ask_to_stop(places)
        telling = Telling(places, timeout_seconds)
        while not ending.within(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return _force(pid, ending, timeout_seconds)
            telling.say()
    finally:
        ending.close()
    return Ended(f"stopped, pid {pid}", pid)


class Telling:
    """Reports what a stop waits for, each reason once."""

    def __init__(self, places: Places, at_most_seconds: float = STOP_SECONDS) -> None:
        self._places = places
        self._at_most_seconds = at_most_seconds
        self._waiting = Waiting()
        self._is_mute = False

    def say(self) -> None:
        if not self._is_mute:
            self._waiting.say(self._what())

    def _what(self) -> str:
        try:
            row = read_status(self._places, _ANSWER_SECONDS)
        except NotRunning:
            self._is_mute = True
            return f"waiting for the process itself to end, {self._at_most_seconds:g} s at most"
        return str(row.get("waits_for") or "waiting for the supervisor to end")


def _drain_first(places: Places, asked_seconds: float) -> list[str]:
    """Returns the turns that have not ended in time."""
    budget_seconds = drain_seconds(places) if asked_seconds == _BY_SETTINGS else asked_seconds
    left = drain_and_wait(places, budget_seconds)
    if left:
        aside(f"  not ended within {budget_seconds:g} s, to go on at the next start: {named(left)}")
    return left


def _ask_to_stop(places: Places) -> None:
    try:
        client = Client(places)
    except NotRunning:
        return
    try:
        client.ask(Stop(), Done, _ANSWER_SECONDS)
    except NotRunning:
        # It may be gone before its answer is read, or be stuck; its process shows which.
        return
    finally:
        client.close()


def _force(pid: int, ending: Ending, timeout_seconds: float) -> Ended:
    """Kills it: all its children die with it; nothing accepted is lost."""
    ending.kill()
    if not ending.within(_KILL_SECONDS):
        raise CommandError(
            f"the supervisor (pid {pid}) cannot be killed: the kernel holds it",
            "look at its disk; nothing accepted is lost",
            Exit.BUG,
        )
    return Ended(f"killed after {timeout_seconds:g} s, pid {pid}; nothing accepted is lost", pid, killed=True)
