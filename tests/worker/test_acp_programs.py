"""The program of an ACP agent: when it is kept, when it is started again, and what it is given."""

import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.messages import AgentSpec, Asked, BudgetLimit, Failed, Setup
from tests.waiting import soon
from tests.worker.acp_host import AGENT, Host, play
from tests.worker.acp_host import home as home
from tests.worker.acp_host import no_process_is_left as no_process_is_left
from tests.worker.peer import assign
from worker import residents
from worker.attempt import Attempt


def test_a_program_that_was_missing_is_looked_for_again_with_the_next_turn(home: Path) -> None:
    program = home / "agent"

    async def scene(host: Host) -> None:
        host.spec = AgentSpec("coder", "acp", {"command": [str(program)]})
        before = len(os.listdir("/proc/self/fd"))
        end = await host.end("say hello")
        assert isinstance(end, Failed)
        assert "there is no program" in end.error
        assert len(os.listdir("/proc/self/fd")) == before
        program.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-E', '-s', AGENT])}\n")
        program.chmod(0o755)
        assert await host.said("say hello") == "hello "

    play(scene)


def test_a_changed_option_or_secret_reaches_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of the host's own environment does."""
    monkeypatch.setenv("HOST_KEY", "of the host")

    async def scene(host: Host) -> None:
        host.secrets = {"TOKEN": "old"}
        assert await host.said("env COLOUR") == "COLOUR=blue"
        host.spec = replace(host.spec, options=host.spec.options | {"env": {"COLOUR": "green"}})
        host.secrets = {"TOKEN": "new"}
        assert await host.said("env COLOUR") == "COLOUR=green"
        assert await host.said("env TOKEN") == "TOKEN=new"
        assert await host.said("env HOST_KEY") == "HOST_KEY="

    play(scene, lambda: Host(env={"COLOUR": "blue"}, env_from=["TOKEN"]))


def test_a_spare_without_the_secrets_of_its_program_is_ready_and_starts_it_with_its_turn() -> None:
    async def scene(host: Host) -> None:
        assert await host.agent.set_up(Setup(host.spec, (), {})) is None
        assert residents.pids() == frozenset()
        host.secrets = {"TOKEN": "t"}
        assert await host.said("env TOKEN") == "TOKEN=t"

    play(scene, lambda: Host(env_from=["TOKEN"]))


def test_a_program_ends_with_its_turn_where_its_agent_is_not_kept() -> None:
    async def scene(host: Host) -> None:
        host.agent._is_set_up = False
        assert await host.said("say hello") == "hello "
        await soon(lambda: not residents.pids())

    play(scene)


def test_no_program_is_asked_beyond_a_budget() -> None:
    async def scene(host: Host) -> None:
        limit = BudgetLimit("session", "tokens", most=100, used=250)
        work = replace(assign("", "say hello"), agent=host.spec, limits=(limit,))
        turn = asyncio.create_task(Attempt(work, host.desk.outbox).run(host.agent.answer))
        await host.desk.until(lambda: bool(host.desk.frames))
        assert isinstance(host.desk.last(), Asked)
        assert residents.pids() == frozenset()
        turn.cancel()
        await asyncio.wait({turn})

    play(scene)
