"""`hermesctl restart`: a stop and a start, through systemd where the unit is installed; or one in place."""

import time

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, tell
from hermesctl.commands.start import launch, started
from hermesctl.commands.status import read_status
from hermesctl.commands.stop import Telling, end
from hermesctl.errors import NotRunning
from hermesctl.systemd import installed_unit
from hermesctl.waiting import Waiting
from ipc.messages import Done, HandOver
from ipc.places import Places
from ipc.time_budgets import START_SECONDS, STOP_PATIENCE_SECONDS

# The next version is tried before it takes over: an interpreter's start on a busy machine.
_TRIAL_SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.05
_EXAMPLES = """\b
Examples:
  hermesctl restart
  hermesctl restart --keep-turns
  hermesctl --home ./trial restart
  hermesctl restart --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--keep-turns", is_flag=True, help="Replace the supervisor in place: running turns go on.")
@acting
@click.pass_obj
def restart(places: Places, keep_turns: bool, form: str) -> None:
    """Stop the supervisor and start it again.

    The new one resumes running turns. With --keep-turns they are not even interrupted: workers go on
    while the supervisor changes to the version and the settings that are installed now. If those would not
    start, nothing changes.
    """
    unit = installed_unit(places)
    if keep_turns:
        _in_place(places, form)
    elif unit is None:
        ended = end(places, STOP_PATIENCE_SECONDS)
        if form != "json":
            print(ended.sentence)
        pid = launch(places, START_SECONDS)
        tell(form, started(places, pid), pid=pid, stopped=ended.pid, killed=ended.killed)
    else:
        unit.change("restart", Telling(places).say)
        pid = int(unit.pid())
        tell(form, f"restarted by systemd, pid {pid}", pid=pid, systemd=True)


def _in_place(places: Places, form: str) -> None:
    client = Client(places)
    try:
        kept = client.ask(HandOver(), Done, _TRIAL_SECONDS_MAX).turns
        began = time.monotonic()
        pid = _wait_until_back(places, client)
    finally:
        client.close()
    away_seconds = time.monotonic() - began
    what = f"{len(kept)} running turns were kept" if len(kept) != 1 else "1 running turn was kept"
    sentence = f"restarted in place, pid {pid}, away for {away_seconds:.1f} s; {what}"
    tell(form, sentence, pid=pid, kept=kept, away_seconds=round(away_seconds, 3))


def _wait_until_back(places: Places, client: Client) -> int:
    """`client` is connected to the old image: once it is lost, the next answer is from the new one."""
    waiting = Waiting()
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if client.is_lost():
            try:
                return int(read_status(places)["pid"])
            except NotRunning:
                waiting.say("waiting for the supervisor to be back")
        time.sleep(_LOOK_SECONDS)
    raise NotRunning(
        f"the supervisor is not back after {START_SECONDS:g} s", "hermesctl start; nothing accepted is lost"
    )
