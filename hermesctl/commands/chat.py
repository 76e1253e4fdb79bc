"""`hermesctl chat`: a conversation in the terminal; its dependencies are loaded only here."""

import os
import sys

import click

from hermesctl import completing
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.extras import extra
from hermesctl.parameters import name
from hermesctl.render import aside
from ipc.places import Places

_DEFAULT_SESSION = "main"
_EXAMPLES = """\b
Examples:
  hermesctl chat
  hermesctl chat demo
  hermesctl --home ~/try chat demo

\b
In it: Enter sends, Alt-Enter makes a new line, Esc or Ctrl-C interrupts, Ctrl-D leaves,
Ctrl-R searches what was typed, Ctrl-O unfolds tools, /help lists everything else.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), default=_DEFAULT_SESSION, shell_complete=completing.sessions)
@click.pass_obj
def chat(places: Places, session: str) -> None:
    """Chat with a session in the terminal.

    SESSION is main unless named. Answers stream, tools are folded to a line, questions are answered in
    place. The busy mode decides about messages typed while a turn runs. The chat survives a restart of the
    supervisor without losing or repeating a message.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise CommandError(
            "a chat needs a terminal, and this is none",
            'hermesctl send SESSION "…" works without one; - reads standard input',
            Exit.USAGE,
        )
    with extra("tui", "chat needs the packages for terminals"):
        from hermesctl.chat.run import run_chat

    for line in run_chat(places, session):
        aside(line)
