"""`hermesctl answer`: gives a waiting turn the answer it needs to go on."""

import click

from hermesctl import completing
from hermesctl.choices import meant_by
from hermesctl.command_result import acting
from hermesctl.parameters import name
from hermesctl.question_prompt import respond
from hermesctl.show_rows import read
from hermesctl.text_input import typed
from ipc.messages import Show
from ipc.places import Places

_QUESTIONS_MAX = 10_000
_EXAMPLES = """\b
Examples:
  hermesctl answer 'demo/3#1' "the blue one"
  hermesctl answer 'demo/3#1' 2
  hermesctl answer 'demo/3#1' - < answer.txt
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", **name("ID"), shell_complete=completing.questions)
@click.argument("text")
@acting
@click.pass_obj
def answer(places: Places, question: str, text: str, form: str) -> None:
    """Answer a question; its turn goes on.

    ID is what `hermesctl questions` shows. TEXT may be the number of a choice; - is read from standard input.
    """
    words = typed(text)
    if not words.strip():
        raise click.UsageError("the answer is empty")
    respond(places, question, _chosen(places, question, words), form)


def _chosen(places: Places, question: str, words: str) -> str:
    """A bare number means the choice of that number, where the question has choices."""
    if not words.strip().isdecimal():
        return words
    rows = read(places, Show("questions", limit=_QUESTIONS_MAX))
    asked = next((row for row in rows if row.get("question") == question), {})
    return meant_by(words, str(asked.get("kind")), asked.get("choices") or ())
