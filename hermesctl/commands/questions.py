"""`hermesctl questions`: the open questions of agents, the longest wait first."""

import click

from hermesctl.parameters import whole
from hermesctl.render import Column, ago, cut_middle
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show
from ipc.places import Places

_COLUMNS = (
    Column("question", "question", wide=True, shorten=cut_middle),
    Column("kind", "kind", rank=3),
    Column("at", "asked", ago, right=True, rank=1),
    Column("text", "text", wide=True),
    Column("choices", "choices", wide=True, rank=2),
)
_EXAMPLES = """\b
Examples:
  hermesctl questions
  hermesctl questions --json
  hermesctl answer 'demo/3#1' "the blue one"
"""


@click.command(epilog=_EXAMPLES)
@click.option("--limit", **whole(1, 10_000), default=100, show_default=True, help="Rows at most.")
@as_json
@click.pass_obj
def questions(places: Places, limit: int, form: str) -> None:
    """List the open questions of agents."""
    print_rows(form, read(places, Show("questions", limit=limit), limit), _COLUMNS, "no questions")
