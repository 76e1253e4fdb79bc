"""Interrupts while the journal does not answer: the worker is killed at once, and the record follows."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ipc.message_parts import Killed
from ipc.messages import Accepted, Done, Interrupt, Refused, Show, Submit
from supervisor.clients import interrupts as interrupts_module
from supervisor.clients.interrupts import Interrupts, Outcome
from supervisor.core import effects
from supervisor.core.events import Event, Finished, InterruptAsked, WorkerDied, WorkerReady, WorkerStarted
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Attempt, Proof, Session, State, Turn, Who
from supervisor.decider import Trouble
from supervisor.journal import journal
from tests.supervisor import test_engine
from tests.supervisor.puppet_service import PuppetService
from tests.waiting import soon, until

NOT_BACK = "a commit of the journal has not come back"
# How long SQLite waits for a lock before a commit fails: in these tests it never does.
BUSY_SECONDS = 600.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PuppetService]:
    with PuppetService(tmp_path / "home", prepare=wait_for_the_lock) as made:
        yield made


def wait_for_the_lock() -> None:
    assert hasattr(journal, "_BUSY_SECONDS")
    journal._BUSY_SECONDS = BUSY_SECONDS


@contextmanager
def disk_held(service: PuppetService) -> Iterator[None]:
    """Another process holds SQLite's lock: commits wait for it."""
    with closing(sqlite3.connect(service.places.journal, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def begin_commit(service: PuppetService) -> None:
    """Something is decided and its commit is under way: requests are served in order, steps between them."""
    service.client.post(Submit("other", "finish", "k"))
    service.status()
    service.status()


def running(service: PuppetService, session: str) -> None:
    assert isinstance(service.ask(Submit(session, "say wait", "k")), Accepted)
    service.until_state(f"{session}/1", "running")


@pytest.mark.parametrize("is_behind", [True, False], ids=["behind another commit", "in that commit itself"])
def test_a_turn_is_ended_and_answered_at_once_and_recorded_once(
    service: PuppetService, is_behind: bool
) -> None:
    running(service, "s")
    with disk_held(service):
        if is_behind:
            begin_commit(service)
        numbers = [service.client.post(Interrupt("s", "me")) for _ in range(2)]
        for answer in service.next_to_each(numbers).values():
            assert isinstance(answer, Done)
            assert answer.turns == ("s/1",)
            assert answer.killed == (Killed("s/1", 1, True, 0.1, "puppets"),)
            assert answer.unwritten == NOT_BACK
        assert service.rows("turns", session="s")[0]["state"] == "running"
    row = service.until_state("s/1", "interrupted")
    assert row["ended_by"] == "me"
    latest = service.client.post(Show("status"))
    arrived = [until(lambda: service.client.receive(1.0))]
    while arrived[-1] is not None and arrived[-1][0] != latest:
        arrived.append(until(lambda: service.client.receive(1.0)))
    assert not {each[0] for each in arrived if each is not None} & set(numbers), "answered twice"
    types = [event["type"] for event in service.rows("story", id="s/1") if "type" in event]
    assert types.count("turn.interrupted") == 1


def test_a_session_where_nothing_runs_is_said_so(service: PuppetService) -> None:
    with disk_held(service):
        begin_commit(service)
        answer = service.ask(Interrupt("nobody", "me"))
    assert isinstance(answer, Done)
    assert (answer.turns, answer.killed, answer.unwritten) == ((), (), "")
    assert answer.note == "nothing runs in session nobody"


def test_another_turn_than_the_expected_is_left_alone(service: PuppetService) -> None:
    running(service, "s")
    with disk_held(service):
        begin_commit(service)
        answer = service.ask(Interrupt("s", "me", expect_turn="s/7"))
    assert isinstance(answer, Refused)
    assert service.rows("turns", session="s")[0]["state"] == "running"


def test_a_turn_that_waits_for_its_worker_is_not_ended_before_its_record(service: PuppetService) -> None:
    """Its Assign waits for the same commit: there is no process that runs it."""
    with disk_held(service):
        service.client.post(Submit("s", "say wait", "k"))
        service.status()
        service.status()
        answer = service.ask(Interrupt("s", "me"))
        assert isinstance(answer, Done)
        assert (answer.turns, answer.killed) == (("s/1",), ())
        assert answer.unwritten == NOT_BACK
    service.until_state("s/1", "interrupted")


def test_nothing_is_kept_of_an_interrupt_that_is_recorded(tmp_path: Path) -> None:
    async def act(stage: test_engine.Stage) -> None:
        told: list[Outcome] = []
        interrupts = Interrupts(stage.engine, lambda incarnation: None, stage)
        interrupts.ask(InterruptAsked("s", "me"), told.append)
        await soon(lambda: told)
        kept = (interrupts._unrecorded, interrupts._awaiting, interrupts._proofs)
        assert kept == ({}, {}, {})
        assert told[0].unwritten == ""

    test_engine.play(tmp_path, act)


WHO = Who(1, 0, 1)
DEATH = WorkerDied(0, 1, Proof(1, True, 1.0, "pidns"), Reason(EndReason.KILLED))


class Desk:
    """Interrupts of a stage on which turn s/1 runs; what they have killed and told."""

    def __init__(self, stage: test_engine.Stage) -> None:
        self._stage = stage
        self.killed: list[int] = []
        self.told: list[Outcome] = []
        self.interrupts = Interrupts(stage.engine, self.killed.append, stage)

    async def begin(self) -> None:
        stage = self._stage
        stage.engine.post(WorkerStarted(WHO.seat, WHO.incarnation, 17))
        stage.engine.post(WorkerReady(WHO))
        stage.engine.post(test_engine.text("s"))
        await soon(lambda: any(isinstance(act, effects.AssignTurn) for act in stage.done.acts))

    def ask(self) -> None:
        self.interrupts.ask(InterruptAsked("s", "me"), self.told.append)

    def die(self) -> None:
        """The process is gone: as the queue shows it."""
        self.interrupts.worker_died(DEATH)
        self._stage.engine.post(DEATH)

    @property
    def is_death_decided(self) -> bool:
        return any(DEATH in batch for batch in self._stage.done.batches)

    @property
    def kept(self) -> tuple[object, ...]:
        return self.interrupts._unrecorded, self.interrupts._awaiting, self.interrupts._proofs


def play(folder: Path, act: Callable[[test_engine.Stage, Desk], Awaitable[None]]) -> None:
    async def begin(stage: test_engine.Stage) -> None:
        desk = Desk(stage)
        await desk.begin()
        await act(stage, desk)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_BUSY_SECONDS", BUSY_SECONDS)
        test_engine.play(folder, begin, Policy(busy_seats=1, spares=0))


def test_nothing_is_kept_of_an_interrupt_that_was_carried_out_before_its_record(tmp_path: Path) -> None:
    async def act(stage: test_engine.Stage, desk: Desk) -> None:
        with stage.disk_held():
            desk.ask()
            await soon(lambda: desk.killed)
            desk.die()
            [outcome] = desk.told
            assert outcome.killed == (Killed("s/1", 1, True, 1.0, "pidns"),)
            assert outcome.unwritten == NOT_BACK
        await soon(lambda: not any(desk.kept) and desk.is_death_decided)
        assert (desk.killed, len(desk.told)) == ([1], 1)
        assert [record.type for record in stage.done.published].count("turn.interrupted") == 1

    play(tmp_path, act)


def test_the_record_of_a_kill_does_not_end_the_turn_after_it(tmp_path: Path) -> None:
    """The turn had ended before it was killed, and the next one has begun by the time of the record."""

    async def act(stage: test_engine.Stage, desk: Desk) -> None:
        with stage.disk_held():
            stage.engine.post(test_engine.text("s", "next"))
            await soon(lambda: stage.engine.committing_since is not None)
            stage.engine.post(Finished(WHO, "s/1", 1, "answer", 0, 0))
            desk.ask()
            await soon(lambda: desk.killed)
            desk.die()
        await soon(lambda: not any(desk.kept) and desk.is_death_decided)
        turn = stage.engine.state.sessions["s"].turn
        assert turn is not None
        assert turn.id == "s/2"
        assert not any(record.type == "turn.interrupted" for record in stage.done.published)

    play(tmp_path, act)


def test_a_commit_that_began_later_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the interrupt is overdue, the commit under way is not yet."""
    monkeypatch.setattr(interrupts_module, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(interrupts_module, "_LOOK_AGAIN_SECONDS", 0.01)
    looks: list[float] = []

    async def act(stage: test_engine.Stage, desk: Desk) -> None:
        with stage.disk_held():
            stage.engine.post(test_engine.text("other"))
            began = await soon(lambda: stage.engine.committing_since)
            assert began is not None

            def now() -> float:
                looks.append(began if len(looks) < 3 else began + 1.0)
                return looks[-1]

            monkeypatch.setattr(stage.clock, "now", now)
            desk.ask()
            await soon(lambda: desk.killed)
            assert looks[:3] == [began] * 3
            desk.die()
        await soon(lambda: not any(desk.kept))

    play(tmp_path, act)


def test_a_process_of_an_earlier_life_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    """Its number may be that of another worker now."""

    async def act(stage: test_engine.Stage, desk: Desk) -> None:
        turn = stage.engine.state.sessions["s"].turn
        assert turn is not None
        assert turn.attempt is not None
        turn.attempt.who = replace(WHO, epoch=0)
        with stage.disk_held():
            stage.engine.post(test_engine.text("other"))
            desk.ask()
            [outcome] = await soon(lambda: desk.told)
            assert outcome.unwritten == NOT_BACK
            assert not desk.killed
            turn.attempt.who = WHO

    play(tmp_path, act)


class Stalled:
    """An engine whose journal cannot be written: turn s/1 runs, and what is posted waits."""

    commit_seconds = 0.0

    def __init__(self) -> None:
        self.trouble: Trouble | None = Trouble("the disk is full", "make room", 0.0)
        self.state = State(Policy(), epoch=WHO.epoch)
        self.posted: list[Callable[[], Event]] = []
        self.run("s/1")

    def run(self, turn: str) -> None:
        running = Turn(turn, "s", (), 0.0, attempt=Attempt(1, WHO, 0.0))
        self.state.sessions["s"] = Session("s", turn=running)

    def post(
        self, event: Callable[[], Event], answer: Callable[[effects.Answer], None] | None = None
    ) -> None:
        self.posted.append(event)

    def has_its_turn(self, incarnation: int) -> bool:
        return True

    def write(self, verb: str, **fields: object) -> None:
        """The log."""


class StalledDesk:
    """Interrupts of a stalled engine; what they have killed and told to whom."""

    def __init__(self) -> None:
        self.engine = Stalled()
        self.killed: list[int] = []
        self.told: list[tuple[str, Outcome]] = []
        self.interrupts = Interrupts(self.engine, self.killed.append, self.engine)

    def ask(self, by: str, drop: bool = False) -> None:
        request = InterruptAsked("s", by, drop=drop)
        self.interrupts.ask(request, lambda outcome: self.told.append((by, outcome)))


def play_stalled(act: Callable[[StalledDesk], Awaitable[None]]) -> None:
    async def begin() -> None:
        await act(StalledDesk())

    asyncio.run(begin())


def test_a_repeated_interrupt_is_answered_with_the_first_and_kills_once() -> None:
    async def act(desk: StalledDesk) -> None:
        desk.ask("one")
        desk.ask("two")
        assert (desk.killed, desk.told) == ([1], [])
        desk.interrupts.worker_died(DEATH)
        desk.ask("three")
        assert [by for by, _ in desk.told] == ["one", "two", "three"]
        assert {outcome.unwritten for _, outcome in desk.told} == {"the disk is full"}
        assert desk.killed == [1]
        assert len(desk.engine.posted) == 1, "recorded once"

    play_stalled(act)


def test_an_interrupt_that_drops_is_recorded_beside_one_that_does_not() -> None:
    async def act(desk: StalledDesk) -> None:
        desk.ask("one")
        desk.ask("two", drop=True)
        desk.interrupts.worker_died(DEATH)
        assert [by for by, _ in desk.told] == ["one", "two"]
        posted = [event() for event in desk.engine.posted]
        assert posted == [InterruptAsked("s", "one", "s/1"), InterruptAsked("s", "two", "s/1", drop=True)]

    play_stalled(act)


def test_a_process_that_has_begun_the_next_turn_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn that was meant ended by itself before the interrupt was overdue."""
    monkeypatch.setattr(interrupts_module, "_PATIENCE_SECONDS", 0.0)

    async def act(desk: StalledDesk) -> None:
        trouble, desk.engine.trouble = desk.engine.trouble, None
        desk.ask("me")
        desk.engine.trouble = trouble
        desk.engine.run("s/2")
        [(_, outcome)] = await soon(lambda: desk.told)
        assert outcome == Outcome(effects.Done(("s/1",)), unwritten="the disk is full")
        assert not desk.killed

    play_stalled(act)


def test_a_commit_is_waited_for_less_than_half_a_second() -> None:
    async def act(desk: StalledDesk) -> None:
        desk.engine.trouble = None
        desk.ask("me")
        [asked] = desk.interrupts._unrecorded["s"]
        assert asked.timer is not None
        assert asked.timer.when() - asyncio.get_running_loop().time() < 0.5

    play_stalled(act)
