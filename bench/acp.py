"""Turns of an ACP agent, warm and after an interrupt, beside the same prompts on a bare connection.

The agent is our own small one (tests/acp_agent.py). The bare connection is the SDK's, to the same program
without a cell, a journal or a supervisor. A prompt streams a hundred words in a second, as a fast model
does. An answer without that time is measured too: it shows what a turn costs by itself. After an interrupt
ours is a spare with an initialised process that loads the session; beside it stands a process that was
initialised before the clock started, and then loads and prompts.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema

from bench.goals import Outcome, rounds_asked, tell
from bench.mcp import Talk
from tests.fake_model import FakeModel
from tests.service import Service, settings_for

TITLE = "Turns of an ACP agent, beside the same prompts on a bare connection"
ROUNDS = 15
_WARM_UP = 1
_AGENT = Path(__file__).resolve().parents[1] / "tests/acp_agent.py"
_LINE = [sys.executable, "-E", "-s", str(_AGENT)]
_STREAMED = "drip 100"
_AT_ONCE = "say hello"


class _Ignoring:
    """A client that drops all updates."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        pass

    async def request_permission(self, **_: Any) -> schema.RequestPermissionResponse:
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))


class Bare:
    """The limit: one process and its connection, or a fresh one that loads the same session."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._session = ""

    async def rounds(self, ask: "asyncio.Queue[str]", told: "asyncio.Queue[float]") -> None:
        """Serves one connection: each text is prompted and its milliseconds are put into `told`."""
        async with self._spawned() as (connection, _):
            await connection.initialize(acp.PROTOCOL_VERSION, schema.ClientCapabilities())
            made = await connection.new_session(str(self._home), mcp_servers=[])
            self._session = made.session_id
            while text := await ask.get():
                told.put_nowait(await self._prompted(connection, text))

    async def loaded(self, text: str) -> float:
        """Milliseconds of load and prompt, in a process that was initialised before."""
        async with self._spawned() as (connection, _):
            await connection.initialize(acp.PROTOCOL_VERSION, schema.ClientCapabilities())
            began = time.perf_counter()
            await connection.load_session(str(self._home), session_id=self._session, mcp_servers=[])
            await self._prompted(connection, text)
            return (time.perf_counter() - began) * 1000

    async def _prompted(self, connection: Any, text: str) -> float:
        began = time.perf_counter()
        await connection.prompt(self._session, [acp.text_block(text)])
        return (time.perf_counter() - began) * 1000

    def _spawned(self) -> Any:
        environment = {"HOME": str(self._home), "PATH": "/usr/bin:/bin"}
        return acp.spawn_agent_process(
            cast("acp.Client", _Ignoring()), _LINE[0], *_LINE[1:], env=environment, cwd=self._home
        )


class Series:
    def __init__(self) -> None:
        self.ours: list[float] = []
        self.limit: list[float] = []

    def add(self, ours: float, limit: float) -> None:
        self.ours.append(ours)
        self.limit.append(limit)


async def _measured(talk: Talk, bare: Bare, rounds: int) -> tuple[Series, Series, Series]:
    streamed, at_once, loaded = Series(), Series(), Series()
    ask: asyncio.Queue[str] = asyncio.Queue()
    told: asyncio.Queue[float] = asyncio.Queue()
    serving = asyncio.create_task(bare.rounds(ask, told))

    async def prompted(text: str) -> float:
        ask.put_nowait(text)
        return await told.get()

    for number in range(rounds + _WARM_UP):
        if number:
            await asyncio.to_thread(talk.rest)
        found = [
            (await asyncio.to_thread(talk.turn, text), await prompted(text)) for text in (_STREAMED, _AT_ONCE)
        ]
        await asyncio.to_thread(talk.rest)
        await asyncio.to_thread(talk.stall, "forever")
        after = await asyncio.to_thread(talk.turn, _STREAMED), await bare.loaded(_STREAMED)
        if number >= _WARM_UP:
            for series, pair in zip((streamed, at_once, loaded), (*found, after), strict=True):
                series.add(*pair)
    ask.put_nowait("")
    await serving
    return streamed, at_once, loaded


def measure(rounds: int) -> list[Outcome]:
    tables = {
        "workers": "count = 1\nspares = 1",
        "agents.default": f'kind = "acp"\ncommand = {json.dumps(_LINE)}',
        "agents.default.sandbox": f'read = ["{_AGENT.parent}"]',
    }
    with tempfile.TemporaryDirectory() as folder, FakeModel() as model:
        bare = Path(folder, "bare")
        bare.mkdir()
        with Service(Path(folder, "home"), settings_for(model, **tables)) as service:
            streamed, at_once, loaded = asyncio.run(_measured(Talk(service, "s"), Bare(bare), rounds))
    return [
        Outcome("a turn of a second on a warm worker", streamed.ours, streamed.limit, "ms", "at most", 1.2),
        Outcome("a turn that is answered at once", at_once.ours, at_once.limit, "ms", "at most", None),
        Outcome(
            "after an interrupt: kill, load and a turn of a second",
            loaded.ours,
            loaded.limit,
            "ms",
            "at most",
            1.3,
        ),
    ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
