"""The process of an ACP agent: what is said of its end."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from worker import residents
from worker.agents import acp_process
from worker.agents.acp_process import AgentProcess


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ((), "the key sesame is wrong"),
        (("",), "the key sesame is wrong"),
        (("", "sesame"), "the key … is wrong"),
        (("ses", "sesame"), "the key … is wrong"),
    ],
)
def test_its_last_words_are_told_without_secrets(tmp_path: Path, secrets: Sequence[str], words: str) -> None:
    async def outcome() -> str:
        line = ["sh", "-c", "echo 'the key sesame is wrong' >&2; exit 3"]
        process = AgentProcess(line, str(tmp_path), dict(os.environ), secrets)
        await asyncio.wait_for(process.closed.wait(), 30)
        return process.outcome()

    assert asyncio.run(outcome()) == f"exited with status 3, saying: {words}"


def speaking(folder: Path, script: str) -> AgentProcess:
    return AgentProcess(["sh", "-c", script], str(folder), dict(os.environ))


async def messages(process: AgentProcess) -> list[dict[str, Any] | None]:
    """All that it says, until it is not listened to any more."""
    await process.connect()
    found: list[dict[str, Any] | None] = []
    async with asyncio.timeout(30):
        while not found or found[-1] is not None:
            found.append(await process.receive())
    process.kill()
    await asyncio.wait_for(process.closed.wait(), 30)
    return found


_GREETING = "for i in $(seq 60); do echo welcome; done"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"{_GREETING}; echo '{{}}'; exec sleep 100", [None]),
        (f"echo '{{}}'; {_GREETING}; echo '{{\"a\": 1}}'", [{}, {"a": 1}, None]),
        ("echo welcome; echo; echo '[1]'; echo '{}'", [{}, None]),
        ("head -c 200000 /dev/zero | tr '\\0' '['; echo; echo '{}'", [{}, None]),
    ],
    ids=["a greeting without end", "noise between messages", "a short greeting", "too many brackets"],
)
def test_lines_that_are_no_messages_are_passed_over_within_a_bound(
    tmp_path: Path, script: str, said: list[dict[str, Any] | None]
) -> None:
    async def act() -> None:
        assert await messages(speaking(tmp_path, script)) == said

    asyncio.run(act())


def test_a_line_that_is_longer_than_any_message_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp_process, "_LINE_BYTES_MAX", 1000)

    async def act() -> None:
        process = speaking(tmp_path, "echo '{}'; head -c 5000 /dev/zero; exec sleep 100")
        await process.connect()
        async with asyncio.timeout(30):
            assert await process.receive() == {}
            assert await process.receive() is None
            await process.closed.wait()

    asyncio.run(act())


def test_of_its_errors_only_the_end_is_kept(tmp_path: Path) -> None:
    async def act() -> None:
        process = speaking(tmp_path, "head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2")
        await asyncio.wait_for(process.closed.wait(), 30)
        assert len(process._errors) <= 4096
        assert process.outcome().endswith(", saying: last")

    asyncio.run(act())


def test_an_ended_one_leaves_no_descriptor_and_no_resident(tmp_path: Path) -> None:
    async def act() -> None:
        before = len(os.listdir("/proc/self/fd"))
        process = speaking(tmp_path, "echo '{}'")
        assert process._pid in residents.pids()
        assert await messages(process) == [{}, None]
        assert process._pid not in residents.pids()
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(act())


def test_an_agent_is_not_read_while_its_messages_are_not_handled(tmp_path: Path) -> None:
    async def act() -> None:
        process = speaking(tmp_path, "echo '{}'")
        await process.connect()
        process.pause(is_full=True)
        receiving = asyncio.create_task(process.receive())
        await asyncio.wait_for(process.closed.wait(), 30)
        assert not receiving.done()
        process.pause(is_full=False)
        assert await receiving == {}

    asyncio.run(act())
