"""`hermesctl deny`: answers a question with "no"."""

import click

from hermesctl import completing
from hermesctl.asking import respond
from ipc.endpoints import Places

_EXAMPLES = """\b
Example:
  hermesctl deny 'demo/3#1'
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", metavar="ID", shell_complete=completing.questions)
@click.pass_obj
def deny(places: Places, question: str) -> None:
    """Answer a question with "no"."""
    respond(places, question, "no")
