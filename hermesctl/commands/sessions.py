"""`hermesctl sessions`: one row per session."""

import click

from hermesctl.parameters import whole
from hermesctl.render import Column, ago, cut_middle
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show
from ipc.places import Places

_COLUMNS = (
    Column("session", "session", wide=True, shorten=cut_middle),
    Column("state", "state", state=True),
    Column("turn", "turn", wide=True, shorten=cut_middle),
    Column("waiting", "waiting", right=True),
    Column("seq", "seq", right=True, rank=2),
    Column("last_at", "last seen", ago, right=True, rank=1),
)
_EXAMPLES = """\b
Examples:
  hermesctl sessions
  hermesctl sessions --limit 20 --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--limit", **whole(1, 10_000), default=100, show_default=True, help="Rows at most.")
@as_json
@click.pass_obj
def sessions(places: Places, limit: int, form: str) -> None:
    """List the sessions."""
    rows = read(places, Show("sessions", limit=limit), limit)
    print_rows(form, rows, _COLUMNS, 'no sessions yet; try: hermesctl send demo "Hello"')
