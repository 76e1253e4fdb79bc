"""`hermesctl cursors`: how far named clients have read."""

import click

from hermesctl import completing
from hermesctl.parameters import name, whole
from hermesctl.render import Column, ago, cut_middle
from hermesctl.session_check import require_session
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show
from ipc.places import Places

_COLUMNS = (
    Column("session", "session", wide=True, shorten=cut_middle),
    Column("cursor", "cursor", wide=True, shorten=cut_middle),
    Column("seq", "seq", right=True),
    Column("behind", "behind", right=True),
    Column("at", "moved", ago, right=True, rank=1),
)
_EXAMPLES = """\b
Examples:
  hermesctl cursors
  hermesctl cursors demo --json
  hermesctl tail demo --cursor bridge
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), required=False, shell_complete=completing.sessions)
@click.option("--limit", **whole(1, 10_000), default=100, show_default=True, help="Rows at most.")
@as_json
@click.pass_obj
def cursors(places: Places, session: str | None, limit: int, form: str) -> None:
    """List how far named clients have read."""
    rows = read(places, Show("cursors", session=session, limit=limit), limit)
    if session is not None and not rows:
        require_session(places, session)
    print_rows(form, rows, _COLUMNS, "no cursors; try: hermesctl tail SESSION --cursor NAME")
