"""Sessions of an ACP agent across its processes: restored, begun anew, and told what they may lack."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests.waiting import soon
from tests.worker.acp_host import Host, past, play
from tests.worker.acp_host import home as home
from tests.worker.acp_host import no_process_is_left as no_process_is_left
from tests.worker.peer import assign
from worker import residents
from worker.agents import acp_kept_session
from worker.agents.acp_prompt import prompt_text


def known_turns(home: Path) -> int:
    (file,) = home.glob(".hermes/*.json")
    return int(json.loads(file.read_bytes())["known_turns"])


@pytest.mark.parametrize("mode", ["plain", "resume"])
def test_a_session_is_restored_after_a_kill(mode: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a load replays is not streamed again."""

    monkeypatch.setattr(acp_kept_session, "STORE_SECONDS", 0.0)

    async def scene(host: Host) -> None:
        await host.said("say one")
        await soon(lambda: known_turns(home) == 1)
        (process,) = residents.pids()
        os.killpg(process, signal.SIGKILL)
        host.new_worker()
        assert await host.said("recall", history=(past("say one", "one"),)) == "prompt 2, no record"

    play(scene, lambda: Host(mode))


def test_an_answer_that_the_agent_may_not_have_stored_is_repeated() -> None:
    """Agents store an answer after they have given it; a kill in between loses it."""

    async def scene(host: Host) -> None:
        await host.said("say one")
        (process,) = residents.pids()
        os.killpg(process, signal.SIGKILL)
        host.new_worker()
        assert await host.said("recall", history=(past("say one", "one"),)) == "prompt 2, a record"

    play(scene)


def test_an_ended_process_has_stored_nothing_since(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_kept_session, "STORE_SECONDS", 0.2)

    async def scene(host: Host) -> None:
        await host.said("say one")
        await host.agent.close()
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, passed.set)
        await passed.wait()
        assert known_turns(home) == 0

    play(scene)


@pytest.mark.parametrize("mode", ["forgetful", "stateless"])
def test_a_session_that_cannot_be_loaded_begins_anew_with_the_history(mode: str) -> None:
    async def scene(host: Host) -> None:
        await host.said("say one")
        host.new_worker()
        history = (past("say one", "one"),)
        assert await host.said("recall", history=history) == "prompt 1, a record"
        assert await host.said("recall", history=(*history, past("recall", "…"))) == "prompt 2, no record"

    play(scene, lambda: Host(mode))


def test_the_prompt_repeats_only_what_the_agent_may_lack() -> None:
    history = (past("first", "1"), past("second", "2"))
    work = assign("", "third", turn="s/3", history=history)
    assert prompt_text(work, 2) == "third"
    assert "User: second\n\nYou: 2" in prompt_text(work, 1)
    assert "first" not in prompt_text(work, 1)
    assert "User: first" in prompt_text(work, 0)
    # A file that was written in this very turn, or by an agent that claims more.
    assert prompt_text(work, 3) == prompt_text(work, 7) == "third"


def test_a_session_is_known_as_far_as_its_process_has_had_the_time_to_store_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before a prompt that may be the last thing its process does."""
    monkeypatch.setattr(acp_kept_session, "STORE_SECONDS", 0.0)

    async def scene(host: Host) -> None:
        await host.said("say one")
        await soon(lambda: known_turns(home) == 1)
        monkeypatch.setattr(acp_kept_session, "STORE_SECONDS", 1000.0)
        host.new_worker()
        history = (past("say one", "one"),)
        await host.said("say two", history=history)
        assert known_turns(home) == 1
        await host.said("say three", history=(*history, past("say two", "two")))
        assert known_turns(home) == 1

    play(scene)
