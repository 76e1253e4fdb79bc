"""`hermesctl stop`: asks the supervisor to end, and returns when its process is gone."""

import time

import click

from hermesctl.client import Client
from hermesctl.commands.status import read_status
from hermesctl.draining import drain_and_wait, drain_seconds, named
from hermesctl.errors import CommandError, NotRunning
from hermesctl.exits import Exit
from hermesctl.process import Ending
from hermesctl.render import aside
from hermesctl.waiting import Waiting
from ipc.endpoints import Places, is_listening
from ipc.messages import Done, Stop

# Given without a number: the supervisor knows what hermes.toml says.
_BY_SETTINGS = -1.0
_EXAMPLES = """\b
Examples:
  hermesctl stop
  hermesctl stop --timeout 60
  hermesctl stop --drain
  hermesctl stop --drain 300
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for its end.",
)
@click.option(
    "--drain",
    "drain",
    is_flag=False,
    flag_value=_BY_SETTINGS,
    type=float,
    metavar="[SECONDS]",
    help="Let running turns finish first, for SECONDS or as long as [turns] drain says.",
)
@click.pass_obj
def stop(places: Places, timeout_seconds: float, drain: float | None) -> None:
    """Stop the supervisor and return when it has ended.

    Turns that run are taken up at the next start.
    """
    if not is_listening(places.control):
        print("not running")
        return
    if drain is not None:
        _drain_first(places, drain)
    pid = int(read_status(places)["pid"])
    ending = Ending(pid)
    try:
        _ask_to_stop(places)
        _wait_for_end(places, pid, ending, timeout_seconds)
    finally:
        ending.close()
    print(f"stopped, pid {pid}")


def _drain_first(places: Places, asked_seconds: float) -> None:
    budget_seconds = drain_seconds(places) if asked_seconds == _BY_SETTINGS else asked_seconds
    left = drain_and_wait(places, budget_seconds)
    if left:
        aside(f"  not ended within {budget_seconds:g} s, to go on at the next start: {named(left)}")


def _ask_to_stop(places: Places) -> None:
    client = Client(places)
    try:
        client.ask(Stop(), Done)
    except NotRunning:
        # It may be gone before its answer is read; whether it is, the process itself tells.
        return
    finally:
        client.close()


def _wait_for_end(places: Places, pid: int, ending: Ending, timeout_seconds: float) -> None:
    waiting = Waiting()
    deadline = time.monotonic() + timeout_seconds
    while not ending.within(min(1.0, max(0.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            raise CommandError(
                f"the supervisor (pid {pid}) still runs after {timeout_seconds:g} s",
                f"kill -9 {pid} ends it; nothing accepted is lost",
                Exit.BUG,
            )
        waiting.say(_what_it_does(places, pid))


def _what_it_does(places: Places, pid: int) -> str:
    try:
        row = read_status(places)
    except NotRunning:
        return f"waiting for process {pid} to end"
    return f"waiting for {row.get('busy', 0)} busy workers to end"
