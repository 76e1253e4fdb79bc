"""`hermesctl approve`: answers a question with "yes"."""

import click

from hermesctl import completing
from hermesctl.asking import respond
from ipc.endpoints import Places

_EXAMPLES = """\b
Example:
  hermesctl approve 'demo/3#1'
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", metavar="ID", shell_complete=completing.questions)
@click.pass_obj
def approve(places: Places, question: str) -> None:
    """Answer a question with "yes"."""
    respond(places, question, "yes")
