"""A question of an agent, where a person reads it: how it looks, how it is answered, and the typed answer."""

import os
import select
import shlex
import sys
from typing import Any

from hermesctl.client import Client
from hermesctl.outcome import tell
from hermesctl.render import one_line
from ipc.endpoints import Places
from ipc.messages import Done, Respond


def question_lines(fields: dict[str, Any]) -> list[str]:
    """The question, its choices, and the command that answers it."""
    name = shlex.quote(one_line(fields.get("question")))
    lines = [f"? {one_line(fields.get('turn'))} asks: {fields.get('text')}"]
    lines += [f"    - {one_line(choice)}" for choice in fields.get("choices") or ()]
    if fields.get("kind") == "approve":
        return [*lines, f"  answer with: hermesctl approve {name}, or: hermesctl deny {name}"]
    return [*lines, f'  answer with: hermesctl answer {name} "…"']


def respond(places: Places, question: str, text: str, form: str) -> None:
    """Answers a question by its id, and says what follows."""
    client = Client(places)
    try:
        done = client.ask(Respond(question, text, "hermesctl"), Done)
    finally:
        client.close()
    sentence = done.note or f"{question} is answered; {', '.join(done.turns)} goes on"
    tell(form, sentence, question=question, text=text, turns=done.turns, note=done.note)


class Prompt:
    """Reads an answer from the terminal, if there is one, without ever waiting for it."""

    def __init__(self) -> None:
        self._has_terminal = sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_watched(self) -> bool:
        """Whether somebody can type here: a job in the background would be stopped by reading."""
        return self._has_terminal and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()

    def open(self) -> None:
        """What was typed before the question was read is no answer to it."""
        if self.is_watched:
            import termios

            termios.tcflush(sys.stdin, termios.TCIFLUSH)

    def line(self) -> str:
        """The line that was typed, or nothing; the end of the input ends the reading."""
        if not self.is_watched or not select.select([sys.stdin], [], [], 0)[0]:
            return ""
        line = sys.stdin.buffer.readline()
        self._has_terminal = bool(line)
        return line.decode(sys.stdin.encoding, "replace").strip()
