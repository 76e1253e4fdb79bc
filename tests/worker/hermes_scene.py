"""Scenes with a worker of the kind `hermes` that has the stand-in for hermes-agent (tests/hermes_double)."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.messages import AgentSpec, Assign, Beat, FromWorker, ModelEndpoint, Setup
from tests.worker.peer import Peer, assign

SPEC = AgentSpec("mine", "hermes", {"instructions": "Be brief."})
NOBODY = "http://127.0.0.1:1/v1"


def turn(text: str, number: int = 1, base_url: str = NOBODY) -> Assign:
    return replace(assign(base_url, text, turn=f"s/{number}"), agent=SPEC)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Plays a scene with a worker that is set up, and gives its log; the workspace is `tmp_path / "home"`."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    def run(
        act: Callable[[Peer], Awaitable[None]],
        acknowledges: Callable[[FromWorker], bool] = lambda _: True,
        model: ModelEndpoint | None = None,
    ) -> str:
        async def scene() -> str:
            peer = Peer(tmp_path, acknowledges)
            peer.fork = replace(peer.fork, has_setup=True)
            try:
                starting = asyncio.create_task(peer.start("tests.worker.hermes_worker", subprocess.Popen))
                await peer.until(lambda: peer.of(Beat))
                peer.send(Setup(SPEC, model=model))
                await starting
                await act(peer)
                assert peer.process is not None
                return await peer.end() if peer.process.poll() is None else (await peer.exit())[1]
            finally:
                await peer.stop()

        return asyncio.run(scene())

    return run
