"""The last steps before a restart in place: what refuses it, and what is gathered for the next image."""

import asyncio
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

import pytest

from ipc.channel import connected_pair
from ipc.codec import VERSION
from ipc.errors import PlaceError
from ipc.messages import Answer, Done, Refused
from ipc.sockets import Wire
from supervisor.core import effects, events
from supervisor.core.policy import Policy
from supervisor.core.state import Attempt, Kept, Session, State, Turn, Who, Worker, WorkerState
from supervisor.handoff.carried_services import HandedService
from supervisor.handoff.carried_workers import HandedProcesses, HandedZygote
from supervisor.handoff.departure import Departure
from supervisor.host.folder_identity import Identity
from supervisor.process_pool import ProcessPool
from supervisor.services.services import Services
from supervisor.workers.agent_faults import AgentFaults
from supervisor.workers.router import Router
from tests.no_containment import uncontained
from tests.waiting import soon

KNOWN = {"/state": Identity("/state", 1, 2, 3, 4)}
PROCESSES = HandedProcesses((HandedZygote("pidns", 500, 8),))
CONNECTED, GONE = Who(3, 0, 7), Who(3, 1, 8)
DEADLINE_SECONDS = 4.0


class Engine:
    """What a departure needs of it; after `halt` nothing more is decided."""

    def __init__(self) -> None:
        self.state = State(Policy(), epoch=3, incarnations=9)
        self.posted: list[events.Event] = []
        self.is_halted = False

    def post(self, event: events.Event, answer: Callable[[effects.Answer], None] | None = None) -> None:
        self.posted.append(event)
        if answer is not None:
            answer(effects.Done(turns=("s/1",)))

    async def halt(self) -> None:
        self.is_halted = True

    def nudge(self) -> None: ...

    def hold(self, words: Callable[[], events.TextStreamed]) -> None: ...

    def run_turn(self, who: Who, session: str) -> None:
        """A worker in the middle of the first turn of a session."""
        turn = Turn(f"{session}/1", session, (), 0.0, attempts=1, attempt=Attempt(1, who, opened_at=0.0))
        self.state.sessions[session] = Session(session, turn=turn)
        worker = Worker(who.seat, who.incarnation, WorkerState.BUSY, session=session, pid=100)
        self.state.workers[who.seat] = worker
        self.state.busy[who.seat] = None


class Pool:
    """Where workers live: it hands over those that it is told to keep."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: list[tuple[list[int], float]] = []

    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses:
        assert self._engine.is_halted, "what is decided now is lost"
        self.asked.append((list(staying), deadline_seconds))
        return PROCESSES

    def is_known(self, incarnation: int) -> bool:
        return True


class Folders:
    known = KNOWN
    fault = ""

    def check_all(self) -> None:
        if self.fault:
            raise PlaceError(self.fault, "put it back")


class NoSubscribers:
    def delta(self, session: str, frame: bytes) -> None: ...


class Stage:
    """A departure with a real router; its workers are played by the test, with libzmq as real ones."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.engine, self.folders = Engine(), Folders()
        self.pool = Pool(self.engine)
        self.router = Router(
            subscriptions=NoSubscribers(),
            build_assign=lambda effect: pytest.fail("nothing is assigned"),
            build_setup=lambda agent: pytest.fail("nothing is set up"),
            contain=uncontained(),
            faults=AgentFaults(lambda agent: None),
        )
        self.router.open(self.engine, self.pool)
        self.departure = Departure(
            engine=self.engine,
            router=self.router,
            processes=cast("ProcessPool", self.pool),
            services=Services((), endpoint="", logs=home, report=lambda changed: None, contain=uncontained()),
            folders=self.folders,
            environment={"REMOVED": "before"},
            again=["--home", str(home)],
        )
        self.wire = Wire()

    def connect(self, who: Who) -> None:
        """Open both channels of a worker; they are connected when the loop has turned."""
        (frames, theirs), (pulse, answering) = (connected_pair(str(self.home)) for _ in range(2))
        self.router.connected(who.seat, who.incarnation, frames, pulse)
        for listener in (theirs, answering):
            self.wire.line(listener.detach(), lambda parts: None)

    def lose(self, who: Who) -> None:
        """Open the channels of a worker whose process is gone."""
        (frames, theirs), (pulse, answering) = (connected_pair(str(self.home)) for _ in range(2))
        self.router.connected(who.seat, who.incarnation, frames, pulse)
        theirs.close()
        answering.close()

    def close(self) -> None:
        self.wire.close()
        self.router.close()


def asked(home: Path, prepare: Callable[[Stage], None] = lambda stage: None) -> Answer:
    """The answer to a request for a restart; checks that only an accepted one is decided and goes on."""

    async def act() -> Answer:
        stage, answers, gone = Stage(home), list[Answer](), list[str]()
        prepare(stage)
        await stage.departure.ask(answers.append, lambda: gone.append("left"))
        [answer] = answers
        is_accepted = isinstance(answer, Done)
        assert stage.engine.posted == ([events.HandOverAsked()] if is_accepted else [])
        assert gone == (["left"] if is_accepted else [])
        stage.close()
        return answer

    return asyncio.run(act())


def test_a_departure_names_the_turns_that_go_on(tmp_path: Path) -> None:
    assert asked(tmp_path) == Done(("s/1",))


def test_a_replaced_folder_refuses_a_departure(tmp_path: Path) -> None:
    def replace(stage: Stage) -> None:
        stage.folders.fault = "the folder was replaced"

    hint = "put it back; nothing was changed"
    assert asked(tmp_path, replace) == Refused("the folder was replaced", hint, code="unavailable")


def test_a_process_that_cannot_be_ended_refuses_a_departure(tmp_path: Path) -> None:
    def hold(stage: Stage) -> None:
        stage.engine.state.stuck[0] = None

    answer = asked(tmp_path, hold)
    assert isinstance(answer, Refused)
    assert answer.error == "of 1 killed worker a process is left that cannot be ended"
    assert answer.retry_after_seconds == 5.0


def test_a_next_image_that_would_not_start_refuses_a_departure(tmp_path: Path) -> None:
    (tmp_path / "hermes.toml").write_text("[workers]\nseats = 3\n")
    answer = asked(tmp_path)
    assert isinstance(answer, Refused)
    assert answer.error.startswith("the next start would fail: ")
    assert answer.hint == "fix that; nothing was changed"


def test_running_turns_are_gathered_and_a_worker_that_hung_up_does_not_stay(tmp_path: Path) -> None:
    async def act() -> None:
        stage = Stage(tmp_path)
        stage.engine.run_turn(CONNECTED, "s")
        stage.engine.run_turn(GONE, "t")
        stage.connect(CONNECTED)
        stage.lose(GONE)
        lines = stage.router._lines
        await soon(lambda: lines[CONNECTED.incarnation].ask_pulse(b""))
        await soon(lambda: lines[CONNECTED.incarnation]._frames.is_open)
        found = await stage.departure.gather(DEADLINE_SECONDS)
        assert stage.pool.asked == [([CONNECTED.incarnation], DEADLINE_SECONDS)]
        assert (found.protocol, found.epoch, found.incarnations) == (VERSION, 3, 9)
        assert found.kept == (Kept(0, 7, 100, "s/1"), Kept(1, 8, 100, "t/1"))
        assert list(found.lines) == [CONNECTED.incarnation]
        assert found.processes == PROCESSES
        assert (found.model, found.environment, found.folders) == (None, {"REMOVED": "before"}, KNOWN)
        for channel in (found.lines[CONNECTED.incarnation].frames, found.lines[CONNECTED.incarnation].pulse):
            assert os.get_inheritable(channel.descriptor)
            os.close(channel.descriptor)
        stage.close()

    asyncio.run(act())


def test_the_model_and_the_gateway_go_on_and_no_other_service(tmp_path: Path) -> None:
    class Handing:
        """Services that are all ready."""

        def hand_over(self, name: str) -> HandedService:
            return HandedService(name, {}, 1, "identity", 900, 0, 1.0, "ready", "address")

    async def act() -> None:
        stage = Stage(tmp_path)
        stage.departure._services = cast("Services", Handing())
        found = await stage.departure.gather(DEADLINE_SECONDS)
        assert found.model is not None
        assert [each.name for each in (found.model, *found.services)] == ["model", "gateway"]
        stage.close()

    asyncio.run(act())
