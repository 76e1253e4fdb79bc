"""`hermesctl deny`: answers a question with "no"."""

import click

from hermesctl import completing
from hermesctl.command_result import acting
from hermesctl.parameters import name
from hermesctl.question_prompt import respond
from ipc.places import Places

_EXAMPLES = """\b
Example:
  hermesctl deny 'demo/3#1'
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", **name("ID"), shell_complete=completing.questions)
@acting
@click.pass_obj
def deny(places: Places, question: str, form: str) -> None:
    """Answer a question with "no"."""
    respond(places, question, "no", form)
