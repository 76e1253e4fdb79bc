"""`hermesctl turns`: one row per turn, filtered by state and session."""

from typing import get_args

import click

from hermesctl import completing
from hermesctl.parameters import name, one_of, whole
from hermesctl.render import Column, ago, cut_middle
from hermesctl.session_check import require_session
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show, TurnState
from ipc.places import Places

_COLUMNS = (
    Column("turn", "turn", wide=True, shorten=cut_middle),
    Column("session", "session", wide=True, shorten=cut_middle, rank=5),
    Column("state", "state", state=True),
    Column("agent", "agent", wide=True, shorten=cut_middle, rank=6),
    Column("level", "level", rank=7),
    Column("attempts", "attempts", right=True, rank=4),
    Column("worker", "worker", right=True, rank=2),
    Column("pid", "pid", right=True, rank=3),
    Column("opened_at", "opened", ago, right=True),
    Column("ended_at", "ended", ago, right=True, rank=1),
    Column("error", "error", wide=True, rank=1),
)
_HOST = Column("host", "host", rank=2)
_EXAMPLES = """\b
Examples:
  hermesctl turns
  hermesctl turns --state running
  hermesctl turns --state poison
  hermesctl turns --session demo --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--state", **one_of(get_args(TurnState)), help="Only turns in this state.")
@click.option(
    "--session", **name("SESSION"), shell_complete=completing.sessions, help="Only turns of this session."
)
@click.option("--limit", **whole(1, 10_000), default=100, show_default=True, help="Rows at most.")
@as_json
@click.pass_obj
def turns(places: Places, state: TurnState | None, session: str | None, limit: int, form: str) -> None:
    """List the turns."""
    rows = read(places, Show("turns", session=session, state=state, limit=limit), limit)
    if session is not None and not rows:
        require_session(places, session)
    columns = (*_COLUMNS[:5], _HOST, *_COLUMNS[5:]) if any(row.get("host") for row in rows) else _COLUMNS
    print_rows(form, rows, columns, "no such turns" if state or session else "no turns yet")
