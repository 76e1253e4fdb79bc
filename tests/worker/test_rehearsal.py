"""The rehearsal leaves a process that can be forked: one thread, no socket, whatever the environment says."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from ipc.message_parts import MCP_ENTRY
from ipc.messages import Finished
from tests.fake_model import FakeModel
from tests.worker.peer import assign, worker
from worker.agents import rehearsal_server
from worker.agents.rehearsal import RehearsalFailed
from worker.mcp_servers import client_rehearsal
from worker.warm_up import rehearse


def test_a_worker_forked_after_the_rehearsal_answers(
    tmp_path: Path, fake: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_LOG", "debug")

    async def scene() -> str:
        async with worker(tmp_path, module="tests.worker.forked_worker", start=subprocess.Popen) as peer:
            for number in (1, 2):
                end = await peer.run(assign(fake.base_url, "some words", turn=f"s/{number}"))
                assert isinstance(end, Finished)
            return await peer.end()

    log = asyncio.run(scene())
    assert "threads=1 sockets=0 mcp=False" in log
    assert "some words" not in log
    assert "openai" not in log
    assert "sk-of-somebody-else" not in {request.key for request in fake.requests()}


def test_a_rehearsal_that_comes_out_wrong_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal_server, "_events", lambda: iter([b"data: [DONE]\n\n"]))
    with pytest.raises(RehearsalFailed, match="not an OpenAI chat stream"):
        rehearse()


def test_the_zygote_of_agents_with_servers_has_used_the_client_before_it_forks(
    tmp_path: Path, fake: FakeModel
) -> None:
    async def scene() -> str:
        module = "tests.worker.forked_mcp_worker"
        async with worker(tmp_path, module=module, start=subprocess.Popen) as peer:
            assert isinstance(await peer.run(assign(fake.base_url, "some words")), Finished)
            return await peer.end()

    assert "threads=1 sockets=0 mcp=True" in asyncio.run(scene())


def test_a_rehearsal_of_the_client_that_comes_out_wrong_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ill = {"content": [{"type": "text", "text": "ill"}], "resultType": "complete"}
    monkeypatch.setitem(client_rehearsal._RESULTS, "tools/call", ill)
    with pytest.raises(client_rehearsal.ClientRehearsalFailed):
        rehearse("builtin", MCP_ENTRY)
