"""A command by itself: its descriptors, its environment, and how it has ended."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from worker import descendants
from worker.tools.command import Command, environment


def test_a_command_that_is_closed_again_closes_nothing_of_others() -> None:
    """A call that runs when its tool is closed closes its command once more."""

    async def scene() -> Command:
        command = Command(["sleep", "300"], ".", lambda content: None)
        command.close()
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
        command.close()
        for other in others:
            os.close(other)
        return command

    command = asyncio.run(scene())
    os.waitpid(command._process.pid, 0)
    assert command.has_ended
    assert (command.exit, command.ended_by) == (None, "SIGKILL")


def test_a_command_that_cannot_be_started_leaves_no_descriptor(tmp_path: Path) -> None:
    async def scene() -> None:
        before = os.listdir("/proc/self/fd")
        for line, folder in ((["/no/such/program"], "."), (["true"], str(tmp_path / "missing"))):
            with pytest.raises(FileNotFoundError):
                Command(line, folder, lambda content: None)
        assert os.listdir("/proc/self/fd") == before

    asyncio.run(scene())


def test_a_command_is_claimed_until_it_has_ended() -> None:
    """Others reap every child that is not claimed, and its status would be lost."""

    async def scene() -> None:
        command = Command(["sh", "-c", "read x; exit 3"], ".", lambda content: None)
        assert command._process.pid in descendants._claimed
        assert await command.wait(20)
        assert command._process.pid not in descendants._claimed
        assert (command.exit, command.ended_by) == (3, "")
        command.close()

    asyncio.run(scene())


def test_a_command_that_a_signal_without_a_name_ended_is_reported_by_its_number() -> None:
    async def scene() -> None:
        number = signal.SIGRTMIN + 3
        command = Command(["sh", "-c", f"kill -{number} $$"], ".", lambda content: None)
        assert await command.wait(20)
        assert (command.exit, command.ended_by) == (None, f"signal {number}")
        assert command.outcome.startswith(f"ended by signal {number}")
        command.close()

    asyncio.run(scene())


def test_a_command_gets_the_language_of_the_host_and_no_terminal() -> None:
    host = {"LC_ALL": "de_DE.UTF-8", "LANG": "C", "TERM": "xterm", "PAGER": "less", "MY_KEY": "secret"}
    shown = {"LC_ALL": "de_DE.UTF-8", "LANG": "C", "TERM": "dumb", "PAGER": "cat"}
    assert environment(host) == shown
