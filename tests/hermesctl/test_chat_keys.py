"""Esc and its neighbours as bytes of a terminal: what they are taken for, without any waiting in the test."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import DummyInput
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.output import DummyOutput

from hermesctl.chat import slash_commands
from hermesctl.chat.connection import Received
from hermesctl.chat.controller import Controller
from hermesctl.chat.screen import Screen
from ipc.messages import Interrupt, Request
from ipc.places import find_places
from tests.hermesctl.peer import Story


class Transport:
    """Where the controller sends requests."""

    def __init__(self) -> None:
        self.posted: list[Request] = []

    def post(self, ticket: int, request: Request) -> None:
        self.posted.append(request)

    def subscribe(self, session: str, after: int | None) -> None:
        raise AssertionError(session)


def typed(home: Path, pieces: Sequence[str]) -> tuple[int, str]:
    """How many interrupts the pieces ask for while a turn runs, and what then stands in the line.

    Each piece is what one read of the terminal gives, with all the time in the world before the next.
    """
    transport = Transport()

    async def scene() -> str:
        controller = Controller(
            find_places(str(home)), "demo", transport, lambda work, then: None, slash_commands.run
        )
        story = Story()
        controller.handle(Received(story.event("turn.opened", turn="demo/1", messages=["m_1"])))
        controller.handle(Received(story.event("attempt.opened", turn="demo/1", attempt=1)))
        with create_app_session(input=DummyInput(), output=DummyOutput()):
            screen = Screen(controller, InMemoryHistory())
            processor = screen.application.key_processor
            keys: list[KeyPress] = []
            parser = Vt100Parser(keys.append)
            with set_app(screen.application):
                for piece in pieces:
                    parser.feed(piece)
                    parser.flush()
                    processor.feed_multiple(keys)
                    processor.process_keys()
                    keys.clear()
            return screen.buffer.text

    text = asyncio.run(scene())
    return sum(isinstance(each, Interrupt) for each in transport.posted), text


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["\x1b"], (1, "")),
        (["\x1b", "\x1b"], (2, "")),
        (["\x03", "\x03"], (1, "")),
        (["\x1b", "do it"], (1, "do it")),
        (["\x1b", "b", "f", "1", "u"], (1, "bf1u")),
        (["\x1bhello"], (1, "hello")),
        (["\x03", "do it"], (1, "do it")),
        (["one two\x1b\r", "three"], (0, "one two\nthree")),
        (["one two", "\x1b\x7f"], (0, "one ")),
        (["one two", "\x1bb", "\x1bd"], (0, "one ")),
        (["one", "\x1b[D", "\x1b[D", "x"], (0, "oxne")),
        (["\x1b[200~pasted\x1b[201~"], (0, "pasted")),
    ],
    ids=[
        "Esc",
        "Esc twice",
        "Ctrl-C twice",
        "Esc, then words",
        "Esc, then letters that Alt has a meaning for",
        "Esc and words at once",
        "Ctrl-C, then words",
        "Alt-Enter",
        "Alt-Backspace",
        "Alt-B, Alt-D",
        "arrows",
        "a paste",
    ],
)
def test_a_lone_escape_interrupts_at_once_and_takes_no_key_with_it(
    tmp_path: Path, pieces: list[str], expected: tuple[int, str]
) -> None:
    assert typed(tmp_path, pieces) == expected


def test_a_sequence_that_arrives_in_two_reads_is_still_one_key(tmp_path: Path) -> None:
    keys: list[KeyPress] = []
    parser = Vt100Parser(keys.append)
    parser.feed("\x1b")
    assert keys == []  # the application flushes it after ESCAPE_SECONDS
    parser.feed("[A")
    assert [key.key.value for key in keys] == ["up"]  # type: ignore[union-attr]
