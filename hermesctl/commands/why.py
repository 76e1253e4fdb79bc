"""`hermesctl why`: the history of a message or a turn, from its arrival to now, one sentence a line."""

import sys

import click

from hermesctl import completing
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.pager import show
from hermesctl.parameters import name
from hermesctl.render import folded
from hermesctl.session_check import require_session
from hermesctl.show_rows import as_json, print_json, read
from hermesctl.story import sentences, without_texts
from ipc.messages import Show
from ipc.places import Places

# Width of the time before a sentence.
_CLOCK_WIDTH = 13
_EXAMPLES = """\b
Examples:
  hermesctl why demo/3
  hermesctl why m_2f1c09d4a77be0131c55
  hermesctl why demo/3 --text
"""


@click.command(epilog=_EXAMPLES)
@click.argument("id", **name("ID"), shell_complete=completing.turns)
@click.option(
    "--text", "texts", flag_value="shown", default="hidden", help="Show what people and agents said."
)
@as_json
@click.pass_obj
def why(places: Places, id: str, texts: str, form: str) -> None:
    """Show the whole history of a message or a turn."""
    rows = list(read(places, Show("story", id=id)))
    if not rows and "/" in id:
        require_session(places, id.rpartition("/")[0])
    if not rows:
        raise CommandError(
            f"there is no message or turn {id}",
            "hermesctl turns lists the turns; what is over is forgotten after [journal] keep",
            Exit.REFUSED,
        )
    if texts == "hidden":
        rows = [without_texts(row) for row in rows]
    if form == "json":
        print_json(rows)
    else:
        show("\n".join(folded(line, _CLOCK_WIDTH, sys.stdout) for line in sentences(rows)))
