"""`hermesctl answer`: gives a waiting turn the answer it needs to go on."""

import click

from hermesctl import completing
from hermesctl.asking import respond
from hermesctl.outcome import acting
from hermesctl.parameters import name
from hermesctl.words import typed
from ipc.endpoints import Places

_EXAMPLES = """\b
Examples:
  hermesctl answer 'demo/3#1' "the blue one"
  hermesctl answer 'demo/3#1' - < answer.txt
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", **name("ID"), shell_complete=completing.questions)
@click.argument("text")
@acting
@click.pass_obj
def answer(places: Places, question: str, text: str, form: str) -> None:
    """Answer a question; its turn goes on.

    ID is what `hermesctl questions` shows. TEXT of - is read from standard input.
    """
    words = typed(text)
    if not words.strip():
        raise click.UsageError("the answer is empty")
    respond(places, question, words, form)
