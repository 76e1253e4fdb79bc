"""The engine on its loop, with the journal on disk: nothing is done before its commit."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.core import effects, events
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason
from supervisor.core.records import Record
from supervisor.core.state import BusyMode, ModelState, Proof, Who
from supervisor.decider import Decided
from supervisor.engine import Engine
from supervisor.event_queue import EventQueue
from supervisor.journal.errors import JournalError, JournalUnwritable
from tests.journal.conftest import open_in
from tests.journal.test_commits import no_room_beyond
from tests.waiting import soon


def text(session: str, key: str = "k") -> events.TextArrived:
    return events.TextArrived(session, f"m_{session}_{key}", key, "hello", BusyMode.QUEUE)


class Performed:
    """Where the engine's outputs end: they are noted in their order."""

    def __init__(self) -> None:
        self.acts: list[Any] = []
        self.published: list[Record] = []
        self.batches: list[list[events.Event]] = []
        self.acknowledged = 0
        self.commits: list[int] = []

    def all_taken(self) -> None: ...

    def committed(self, seconds: float, count: int) -> None:
        assert 0 <= seconds < 60
        self.commits.append(count)

    def act(self, effect: effects.Effect) -> None:
        self.acts.append(effect)

    def publish(self, records: Sequence[Record]) -> None:
        self.published += records

    def flush(self) -> None: ...

    def acknowledge(self) -> None:
        self.acknowledged += 1

    def decided(self, batch: Decided) -> None:
        self.batches.append([event for event, _, _ in batch])

    @property
    def is_nothing(self) -> bool:
        return not (self.acts or self.published or self.acknowledged or self.commits)


class Stage:
    """An engine that has recovered and rests."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.path = folder / "journal.db"
        self.journal = open_in(folder)
        self.done = Performed()
        self.fatal: list[BaseException] = []
        self.clock = Clock()
        self.answers: list[effects.Answer] = []
        self.logged: list[str] = []
        self.engine = Engine(
            self.journal.load(policy),
            EventQueue(self.clock.now),
            clock=self.clock,
            journal=self.journal,
            outputs=self.done,
            contain=Containment(self, self.clock.now, lambda place: None),
            passing=_passing,
            fatal=self.fatal.append,
        )

    async def begin(self) -> None:
        self.engine.post(events.Recovered())
        self.engine.post(events.ModelChanged(ModelState.READY))
        await soon(lambda: self.done.batches)
        self.forget()

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""
        self.logged.append(verb)

    def forget(self) -> None:
        self.done.__init__()  # type: ignore[misc]

    @contextmanager
    def disk_held(self) -> Iterator[None]:
        """Another process holds SQLite's lock: a commit waits for it, for five seconds at most."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")


def _passing(error: BaseException) -> tuple[str, str] | None:
    return ("the disk is full", "make room") if isinstance(error, JournalUnwritable) else None


def play(folder: Path, act: Callable[[Stage], Awaitable[None]], policy: Policy | None = None) -> None:
    async def run() -> None:
        stage = Stage(folder, policy or Policy())
        try:
            await stage.begin()
            await act(stage)
        finally:
            stage.journal.close()

    asyncio.run(run())


async def _rounds(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_nothing_is_done_answered_or_acknowledged_before_its_commit(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        with stage.disk_held():
            stage.engine.post(text("s"), stage.answers.append)
            await soon(lambda: stage.engine.committing_since is not None)
            await _rounds()
            assert stage.done.is_nothing
            assert stage.answers == []
            assert stage.engine.commit_seconds > 0
        await soon(lambda: stage.answers)
        assert stage.answers == [effects.Accepted("m_s_k", 1, again=False)]
        assert stage.journal.known("m_s_k")
        assert [record.type for record in stage.done.published][:2] == ["message.accepted", "turn.opened"]
        assert stage.done.acknowledged == 1
        assert stage.done.commits == [len(stage.done.published)]
        assert stage.engine.commit_seconds == 0

    play(tmp_path, act)


def test_events_gather_during_a_commit_and_share_the_next(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        before = stage.journal.transactions
        with stage.disk_held():
            stage.engine.post(text("s0"), stage.answers.append)
            await soon(lambda: stage.engine.committing_since is not None)
            for number in range(1, 6):
                stage.engine.post(text(f"s{number}"), stage.answers.append)
            await _rounds()
        await soon(lambda: len(stage.answers) == 6)
        assert [len(batch) for batch in stage.done.batches] == [1, 5]
        assert stage.journal.transactions == before + 2

    play(tmp_path, act)


def test_b3_the_same_key_twice_in_one_batch_is_one_message(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.engine.post(text("s"), stage.answers.append)
        stage.engine.post(text("s"), stage.answers.append)
        await soon(lambda: len(stage.answers) == 2)
        assert len(stage.done.batches) == 1
        assert stage.answers == [
            effects.Accepted("m_s_k", 1, again=False),
            effects.Accepted("m_s_k", 1, again=True),
        ]
        accepted = [record for record in stage.done.published if record.type == "message.accepted"]
        assert len(accepted) == 1

    play(tmp_path, act)


def test_a_commit_without_room_is_begun_again_until_there_is(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        moved: list[bool] = []
        with no_room_beyond(stage.path.with_name("journal.db-wal").stat().st_size):
            stage.engine.post(text("s"), stage.answers.append)
            stage.engine.prove(lambda: moved.append(True))
            trouble = await soon(lambda: stage.engine.trouble)
            assert trouble is not None
            assert (trouble.error, trouble.hint) == ("the disk is full", "make room")
            assert moved == [True]
            assert stage.done.is_nothing
        await soon(lambda: stage.answers)
        assert stage.engine.trouble is None
        assert stage.fatal == []
        stage.engine.post(text("t"), stage.answers.append)
        await soon(lambda: len(stage.answers) == 2)
        assert moved == [True]

    play(tmp_path, act)


def test_a_commit_that_fails_for_good_is_fatal_and_performs_nothing(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.journal._group_commit.stop()
        stage.engine.post(text("s"), stage.answers.append)
        await soon(lambda: stage.fatal)
        assert isinstance(stage.fatal[0], JournalError)
        assert stage.done.is_nothing
        assert stage.answers == []

    play(tmp_path, act)


def test_an_event_that_asks_late_is_asked_when_it_is_decided(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        asked: list[bool] = []

        def late() -> events.Event:
            asked.append(True)
            return events.InterruptAsked("s", "me")

        with stage.disk_held():
            stage.engine.post(text("s"), stage.answers.append)
            await soon(lambda: stage.engine.committing_since is not None)
            stage.engine.post(late, stage.answers.append)
            await _rounds()
            assert asked == []
        await soon(lambda: len(stage.answers) == 2)
        assert asked == [True]
        stage.engine.post(late, stage.answers.append)
        await soon(lambda: len(stage.answers) == 3)

    play(tmp_path, act)


def test_words_ask_for_no_batch_of_their_own(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        words = events.TextStreamed(Who(1, 0, 1), "s/1", 1, "words")
        stage.engine.hold(lambda: words)
        await _rounds()
        assert stage.done.batches == []
        stage.engine.nudge()
        await soon(lambda: stage.done.batches)
        assert stage.done.batches == [[words]]

    play(tmp_path, act)


def test_a_proof_comes_once_and_also_when_nothing_happens(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        moved: list[int] = []
        stage.engine.prove(lambda: moved.append(1))
        await soon(lambda: moved)
        with stage.disk_held():
            stage.engine.post(text("s"))
            await soon(lambda: stage.engine.committing_since is not None)
            stage.engine.prove(lambda: moved.append(2))
            await _rounds()
            assert moved == [1]
        await soon(lambda: moved == [1, 2])

    play(tmp_path, act)


def test_a_deadline_is_met_though_nothing_happens(tmp_path: Path) -> None:
    """A worker that was ordered and does not start is ended in time."""

    async def act(stage: Stage) -> None:
        stage.engine.post(events.ScaleAsked(3), stage.answers.append)
        await soon(lambda: any(isinstance(each, effects.KillWorker) for each in stage.done.acts))

    play(tmp_path, act, Policy(start_seconds=0.1))


def test_an_earlier_deadline_replaces_a_later_one(tmp_path: Path) -> None:
    """The first workers may take half a minute to start; those ordered later, a tenth of a second."""

    async def act(stage: Stage) -> None:
        stage.engine.post(events.PolicyChanged(Policy(start_seconds=0.1)))
        stage.engine.post(events.ScaleAsked(3))
        killed = await soon(
            lambda: [each for each in stage.done.acts if isinstance(each, effects.KillWorker)]
        )
        started = [each for each in stage.done.acts if isinstance(each, effects.StartWorker)]
        assert killed[0].incarnation == started[0].incarnation

    play(tmp_path, act)


def test_after_a_halt_nothing_is_decided(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        with stage.disk_held():
            stage.engine.post(text("s"), stage.answers.append)
            await soon(lambda: stage.engine.committing_since is not None)
            stage.engine.post(text("late"), stage.answers.append)
            halting = asyncio.get_running_loop().create_task(stage.engine.halt())
            await _rounds()
            assert not halting.done()
        await asyncio.wait_for(halting, 30)
        assert stage.answers == [effects.Accepted("m_s_k", 1, again=False)]
        stage.engine.post(text("later"), stage.answers.append)
        stage.engine.nudge()
        await _rounds()
        assert len(stage.answers) == 1
        assert not stage.engine.has_its_turn(1)

    play(tmp_path, act)


def test_a_halt_at_rest_returns_at_once(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        assert stage.engine.has_its_turn(1)
        assert not stage.engine.has_its_turn(0)
        await asyncio.wait_for(stage.engine.halt(), 30)

    play(tmp_path, act)


def test_an_exception_while_deciding_is_fatal(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        def broken() -> events.Event:
            raise LookupError("no such event")

        stage.engine.post(broken, stage.answers.append)
        await soon(lambda: stage.fatal)
        assert isinstance(stage.fatal[0], LookupError)
        assert stage.logged == ["engine.failed"]

    play(tmp_path, act)


def test_what_the_journal_could_not_hold_ends_its_worker_or_is_refused(tmp_path: Path) -> None:
    """The rest of the batch is decided."""

    async def act(stage: Stage) -> None:
        who = Who(1, 0, 1)
        stage.engine.post(events.ToolFinished(who, "s/1", 1, "c", True, 2**64, "result"))
        stage.engine.post(events.EventsSeen("s", "bridge", 2**64), stage.answers.append)
        stage.engine.post(text("s"))
        await soon(lambda: any(events.WorkerUnreachable in map(type, batch) for batch in stage.done.batches))
        happened = [event for batch in stage.done.batches for event in batch]
        assert [type(event) for event in happened] == [events.TextArrived, events.WorkerUnreachable]
        told = happened[-1]
        assert isinstance(told, events.WorkerUnreachable)
        assert (told.who, told.reason.kind) == (who, EndReason.BAD_FRAME)
        [refused] = stage.answers
        assert isinstance(refused, effects.Refused)
        assert refused.code == "internal"
        assert stage.logged == ["contained", "contained"]

    play(tmp_path, act)


def test_a_deadline_is_met_after_an_earlier_one_was(tmp_path: Path) -> None:
    """Nothing but the clock says that the second worker does not start either."""

    async def act(stage: Stage) -> None:
        def killed() -> list[effects.KillWorker]:
            return [each for each in stage.done.acts if isinstance(each, effects.KillWorker)]

        stage.engine.post(events.PolicyChanged(Policy(busy_seats=1, spares=0, start_seconds=0.02)))
        for number in (1, 2):
            await soon(lambda count=number: len(killed()) >= count)  # type: ignore[misc]
            last = killed()[-1]
            proof = Proof(1, True, 1.0, "pidns")
            stage.engine.post(events.WorkerDied(last.seat, last.incarnation, proof, last.why))

    play(tmp_path, act, Policy(busy_seats=1, spares=0, start_seconds=0.02))
