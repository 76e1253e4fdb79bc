"""A worker's ACP agent in the test's own loop, and the small agent as a real process with real pipes."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.messages import AgentSpec, Failed, Finished, FromWorker, ModelEndpoint, PastAttempt, PastTurn
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker import residents
from worker.agents.acp import Acp
from worker.attempt import Attempt

AGENT = str(Path(__file__).resolve().parents[1] / "acp_agent.py")
Scene = Callable[["Host"], Awaitable[None]]


class Host:
    """One worker's agent and its turns; `mode` is the agent's way to misbehave."""

    def __init__(self, mode: str = "plain", **options: Any) -> None:
        line = [sys.executable, "-E", "-s", AGENT, "--mode", mode]
        self.spec = AgentSpec("coder", "acp", {"command": line} | options)
        self.desk = Desk()
        self.turns = 0
        self.secrets: dict[str, str] = {}
        self.model = ModelEndpoint("", "")
        self.agents: list[Acp] = []
        self.new_worker()

    def new_worker(self) -> None:
        self.agent = Acp(self.spec)
        # As a set-up worker keeps it for its later turns.
        self.agent._is_set_up = True
        self.agents.append(self.agent)

    async def turn(self, text: str, **known: Any) -> list[FromWorker]:
        """The frames of one turn."""
        self.turns += 1
        work = assign("", text, turn=f"s/{self.turns}", **known)
        work = msgspec.structs.replace(work, agent=self.spec, secrets=self.secrets, model=self.model)
        before = len(self.desk.frames)
        self.attempt = Attempt(work, self.desk.outbox)
        await self.attempt.run(self.agent.answer)
        return self.desk.frames[before:]

    async def end(self, text: str, **known: Any) -> Finished | Failed:
        *_, end = await self.turn(text, **known)
        assert isinstance(end, Finished | Failed)
        return end

    async def said(self, text: str, **known: Any) -> str:
        end = await self.end(text, **known)
        assert isinstance(end, Finished), end
        return end.text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    for pid in residents.pids():
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        residents.remove(pid)


def play(scene: Scene, host: Callable[[], Host] = Host) -> None:
    async def run() -> None:
        stage = host()
        await scene(stage)
        for agent in stage.agents:
            await agent.close()

    asyncio.run(run())


def past(message: str, text: str) -> PastTurn:
    return PastTurn((message,), (PastAttempt(text),))
