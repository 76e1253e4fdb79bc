"""Shows a question of an agent to a person and reads the answer."""

import os
import select
import shlex
import sys
from typing import Any

from hermesctl.choices import numbered, ways
from hermesctl.client import Client
from hermesctl.command_result import tell
from hermesctl.parameters import quoted
from hermesctl.render import one_line
from ipc.messages import Done, Respond
from ipc.places import Places


def question_lines(fields: dict[str, Any], is_typed_here: bool) -> list[str]:
    """The question, its choices by number, and the ways to answer it."""
    name = shlex.quote(one_line(fields.get("question")))
    kind, choices = str(fields.get("kind")), [one_line(choice) for choice in fields.get("choices") or ()]
    lines = [f"? {one_line(fields.get('turn'))} asks: {fields.get('text')}"]
    if kind != "approve":
        lines += [f"    {number}  {choice}" for number, choice in numbered(choices)]
    command = f'hermesctl answer {name} "…"'
    if kind == "approve":
        always = f", or: hermesctl answer {name} always" if "always" in choices else ""
        command = f"hermesctl approve {name}, or: hermesctl deny {name}{always}"
    if is_typed_here:
        return [*lines, f"  answer with {ways(kind, choices)}", f"  from elsewhere: {command}"]
    return [*lines, f"  answer with: {command}"]


def respond(places: Places, question: str, text: str, form: str) -> None:
    """Answers a question by its id, and prints the result."""
    client = Client(places)
    try:
        done = client.ask(Respond(question, text, "hermesctl"), Done)
    finally:
        client.close()
    follows = done.note or f"{', '.join(done.turns)} goes on"
    sentence = f"{question} is answered with {quoted(text)}: {follows}"
    tell(form, sentence, question=question, text=text, turns=done.turns, note=done.note)


class Prompt:
    """Reads an answer from the terminal, if there is one, without blocking."""

    def __init__(self) -> None:
        self._has_terminal = sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_watched(self) -> bool:
        """True when a person can type here: a background job would be stopped by reading."""
        return self._has_terminal and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()

    def open(self) -> None:
        """Discards what was typed before the question was shown."""
        if self.is_watched:
            import termios

            termios.tcflush(sys.stdin, termios.TCIFLUSH)

    def line(self) -> str:
        """Returns the typed line, or nothing; the end of the input ends the reading."""
        if not self.is_watched or not select.select([sys.stdin], [], [], 0)[0]:
            return ""
        line = sys.stdin.buffer.readline()
        self._has_terminal = bool(line)
        return line.decode(sys.stdin.encoding, "replace").strip()
