"""Calls that run as processes: what is left of one that takes too long, or whose turn has ended."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from worker.tools import program
from worker.tools.fetch import Fetch
from worker.tools.files import Edit, Read, Write
from worker.tools.program import Program


class Endless:
    """A command that writes and does not end; in place of a process."""

    made: "list[Endless]"

    def __init__(
        self, line: Sequence[str], folder: str, on_output: Callable[[bytes], None], given: bytes = b""
    ) -> None:
        self.given = given
        self.waited = 0.0
        self.is_waited_for = asyncio.Event()
        self.is_closed = False
        self._on_output = on_output
        Endless.made.append(self)

    async def wait(self, seconds: float) -> bool:
        self._on_output(b"z" * 100)
        self.waited += seconds
        self.is_waited_for.set()
        if seconds < 1:
            return False
        await asyncio.Event().wait()
        return True

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def _endless(monkeypatch: pytest.MonkeyPatch) -> None:
    Endless.made = []
    monkeypatch.setattr(program, "Command", Endless)


def test_a_call_that_takes_too_long_is_ended_and_leaves_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    report = asyncio.run(Program("worker.file_calls", 0.5, 40).call({"tool": "read"}))
    assert (report.ok, report.text) == (False, "error: it took longer than 0.5 s")
    (command,) = Endless.made
    assert (command.waited, command.is_closed, command.given) == (0.5, True, b'{"tool": "read"}')
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Read, {"path": "x"}),
        (Write, {"path": "x", "content": "y"}),
        (Edit, {"path": "x", "old": "y", "new": "z"}),
        (Fetch, {"url": "http://127.0.0.1/"}),
    ],
)
def test_a_running_call_ends_with_the_turn_and_no_later_than_in_a_minute(
    make: Callable[[], Any], arguments: dict[str, Any]
) -> None:
    async def scene() -> None:
        tool = make()
        running = asyncio.create_task(tool.run(arguments, lambda text: None))
        await asyncio.sleep(0)  # to the first wait of the call
        (command,) = Endless.made
        await command.is_waited_for.wait()
        assert (command.waited, command.is_closed) == (60, False)
        tool.close()
        assert command.is_closed
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(scene())


def test_a_call_that_has_ended_is_not_held_for_the_rest_of_the_turn() -> None:
    async def scene() -> None:
        program = Program("worker.file_calls", 0.5)
        for _ in range(3):
            await program.call({"tool": "read"})
        assert not program._running

    asyncio.run(scene())


def test_what_a_repetition_would_do_is_known_of_each_tool() -> None:
    """After a crash a call that is unsafe is not made again by itself."""
    assert [tool.repeat for tool in (Read, Fetch, Write, Edit)] == ["pure", "pure", "idempotent", "unsafe"]
