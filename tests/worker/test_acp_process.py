"""The process of an ACP agent: what is said of its end."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from worker.agents.acp_process import AgentProcess


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ((), "the key sesame is wrong"),
        (("",), "the key sesame is wrong"),
        (("", "sesame"), "the key … is wrong"),
    ],
)
def test_its_last_words_are_told_without_secrets(tmp_path: Path, secrets: Sequence[str], words: str) -> None:
    async def outcome() -> str:
        line = ["sh", "-c", "echo 'the key sesame is wrong' >&2; exit 3"]
        process = AgentProcess(line, str(tmp_path), dict(os.environ), secrets)
        await asyncio.wait_for(process.closed.wait(), 30)
        return process.outcome()

    assert asyncio.run(outcome()) == f"exited with status 3, saying: {words}"
