"""An agent is set up before the worker's first Ready; a set-up that fails is told in the first turn."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.messages import AgentFault, AgentSpec, Beat, Failed, Finished, FromWorker, Hello, Ready, Setup
from supervisor.core.policy import Policy
from tests import warm
from tests.fake_model import FakeModel
from tests.worker.peer import Peer, assign
from tests.worker.test_attempt import Desk
from worker import residents
from worker.agent_setup import BUSY_SECONDS_MAX, SETUP_SECONDS_MAX, Agents
from worker.agents import Agent
from worker.attempt import Answer, Attempt
from worker.errors import AgentError
from worker.mcp_servers import mcp_server

PRIVATE = "a person's words"
SETUP = Setup(AgentSpec("default", "builtin"))


def play(folder: Path, tale: Callable[[Peer], Awaitable[None]]) -> None:
    """A worker that waits for its Setup; it has said Hello."""

    async def scene() -> None:
        peer = Peer(folder, lambda _: True)
        peer.fork = replace(peer.fork, has_setup=True)
        try:
            starting = asyncio.create_task(peer.start("tests.worker.one_worker", warm.Popen))
            await peer.until(lambda: peer.of(Beat))
            await tale(peer)
            await starting
        finally:
            await peer.stop()

    asyncio.run(scene())


def test_a_worker_is_ready_only_once_its_agent_is_set_up(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        assert peer.of(Hello, Ready) == [Hello(7, 3, 41, has_setup=True)]
        peer.send(SETUP)
        await peer.until(lambda: peer.of(Ready))
        for number in (1, 2):
            end = await peer.run(assign(fake.base_url, f"number {number}", turn=f"s/{number}"))
            assert isinstance(end, Finished)

    play(tmp_path, tale)


def test_a_second_setup_violates_the_protocol(tmp_path: Path) -> None:
    async def tale(peer: Peer) -> None:
        peer.send(SETUP)
        await peer.until(lambda: peer.of(Ready))
        peer.send(SETUP)
        status, log = await peer.exit()
        assert status == 76
        assert "worker.set_up_unasked" in log

    play(tmp_path, tale)


def test_an_agent_that_cannot_be_started_is_told_before_its_first_turn(tmp_path: Path) -> None:
    async def tale(peer: Peer) -> None:
        peer.send(Setup(AgentSpec("x", "nobody's")))
        await peer.until(lambda: peer.of(Ready))
        [told, _] = peer.of(AgentFault, Ready)
        assert isinstance(told, AgentFault)
        assert told.error == 'there is no agent of kind "nobody\'s"'
        assert told.hint.startswith("set [agents.x] kind")

    play(tmp_path, tale)


class Kept:
    """An agent whose set-up does what the test says, once for each entry."""

    def __init__(self, *ways: Callable[[], Awaitable[None]]) -> None:
        self.ways = list(ways)
        self.set_ups = 0

    async def set_up(self, setup: Setup) -> None:
        self.set_ups += 1
        await self.ways.pop(0)()

    async def answer(self, attempt: Attempt) -> str:
        await attempt.stream("here")
        return "stop"


async def _well() -> None:
    """Nothing to do."""


async def _hang() -> None:
    """Ignores its first cancellation; the second one is that of the test's loop at its end."""
    for _ in range(2):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def _refuse() -> None:
    raise AgentError("the command 'x' does not exist", "install it")


async def _cancel() -> None:
    raise asyncio.CancelledError


async def _break() -> None:
    residents.add(2**22)
    raise ValueError(PRIVATE)


def answer(agents: Agents) -> Answer:
    async def run(attempt: Attempt) -> str:
        return await (await agents.agent(attempt.assign.agent)).answer(attempt)

    return run


def ends(agent: Kept, turns: int) -> list[FromWorker]:
    """The ends of so many turns, after a set-up that may take a tenth of a second."""

    async def scene() -> list[FromWorker]:
        found: list[FromWorker] = []

        def find(spec: AgentSpec) -> Agent:
            return agent

        agents = Agents(find, seconds_max=0.1)
        await agents.set_up(SETUP)
        for number in range(turns):
            desk = Desk()
            await Attempt(assign("http://127.0.0.1:9", turn=f"s/{number}"), desk.outbox).run(answer(agents))
            found.append(desk.last())
        return found

    return asyncio.run(scene())


def test_an_agent_is_set_up_once_and_answers_all_turns() -> None:
    agent = Kept(_well)
    assert [type(end) for end in ends(agent, 3)] == [Finished] * 3
    assert agent.set_ups == 1


@pytest.mark.parametrize(
    ("way", "error", "again"),
    [
        (_refuse, "the command 'x' does not exist", False),
        (_break, "the agent could not be set up (ValueError)", False),
        (_cancel, "the agent cancelled its own set-up", True),
    ],
)
def test_the_first_turn_says_why_the_set_up_failed_and_the_next_one_tries_it_again(
    way: Callable[[], Awaitable[None]], error: str, again: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = Kept(way, _well)
    first, second, third = ends(agent, 3)
    assert isinstance(first, Failed)
    assert (first.error, first.again) == (error, again)
    assert isinstance(second, Finished)
    assert isinstance(third, Finished)
    assert agent.set_ups == 2
    assert residents.pids() == frozenset()
    assert PRIVATE not in capfd.readouterr().err


def test_a_set_up_that_hangs_is_given_up_and_told() -> None:
    async def scene() -> FromWorker:
        agent = Kept(_hang)
        agents = Agents(lambda spec: agent, seconds_max=0.1)
        async with asyncio.timeout(60):
            fault = await agents.set_up(SETUP)
        # It may be the host: that is no reason to say that the agent cannot be started.
        assert fault is not None
        assert not fault.cannot_start
        desk = Desk()
        await Attempt(assign("http://127.0.0.1:9"), desk.outbox).run(answer(agents))
        return desk.last()

    end = asyncio.run(scene())
    assert isinstance(end, Failed)
    assert (end.error, end.again) == ("the agent was not set up within 0.1 s", True)


def test_an_agent_of_another_name_or_kind_is_made_for_its_turn() -> None:
    async def scene() -> None:
        made: list[AgentSpec] = []

        def find(spec: AgentSpec) -> Agent:
            made.append(spec)
            return Kept(_well)

        agents = Agents(find)
        await agents.set_up(SETUP)
        kept = await agents.agent(SETUP.agent)
        others = [AgentSpec("other", "builtin"), AgentSpec("default", "python")]
        for spec in others:
            assert await agents.agent(spec) is not kept
        assert await agents.agent(SETUP.agent) is kept
        assert made == [SETUP.agent, *others]

    asyncio.run(scene())


class Faulty(Kept):
    """Gives its fault to its first turn by itself."""

    async def set_up(self, setup: Setup) -> AgentError | None:  # type: ignore[override]
        return AgentError("there is no such program", "install it")


def test_the_fault_of_an_agent_that_answers_all_the_same_is_passed_on() -> None:
    async def scene() -> None:
        agent = Faulty()
        agents = Agents(lambda spec: agent)
        fault = await agents.set_up(SETUP)
        assert fault is not None
        assert fault.error == "there is no such program"
        assert await agents.agent(SETUP.agent) is agent

    asyncio.run(scene())


def test_a_set_up_is_given_up_before_the_supervisor_gives_up_the_worker() -> None:
    assert Policy().start_seconds > BUSY_SECONDS_MAX > SETUP_SECONDS_MAX
    assert SETUP_SECONDS_MAX > mcp_server._BUSY_SECONDS_MAX > mcp_server.START_SECONDS_MAX
