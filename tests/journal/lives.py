"""The rules and a journal without doors: events go through `decide`, records to disk, nothing is done."""

from collections.abc import Iterable
from typing import Any

from ipc.paging import Placed
from supervisor.core.decide import decide
from supervisor.core.effects import Decision
from supervisor.core.events import (
    Event,
    ModelChanged,
    Recovered,
    TextArrived,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
)
from supervisor.core.inbox import put_to_rest
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import MessageAccepted, Record
from supervisor.core.state import BusyMode, ModelState, Proof, Who
from supervisor.journal.contract import Keeper
from supervisor.journal.snapshot import durable


def accepted(number: int, session: str = "s", text: str = "hello", seq: int | None = None) -> MessageAccepted:
    """The n-th message of a session to which nothing else has happened."""
    return MessageAccepted(
        session=session,
        at=float(number),
        seq=seq or number,
        message=f"m_{session}_{number}",
        key=f"key-{number}",
        kind="text",
        text=text,
        busy="queue",
    )


def listed(rows: Iterable[Placed], name: str) -> list[Any]:
    """One column of a table."""
    return [row[name] for row, _ in rows if row is not None]


class Life:
    """One life of the supervisor. After every event, memory and journal must agree."""

    def __init__(self, journal: Keeper, policy: Policy | None = None, now: float = 1000.0) -> None:
        self.journal = journal
        self.policy = policy or Policy(busy_seats=1, spares=1)
        self.state = journal.load(self.policy)
        self.now = now
        self.records: list[Record] = []
        self.tell(Recovered())
        self.tell(ModelChanged(ModelState.READY))

    def tell(self, event: Event) -> Decision:
        self.now += 0.01  # so little that no deadline comes near
        self._wake(getattr(event, "session", None))
        decision = decide(self.state, event, self.now)
        if decision.records:
            self.journal.commit_now(decision.records)
            self.records.extend(decision.records)
        put_to_rest(self.state, set(self.state.sessions))
        assert durable(self.journal.load(self.policy)) == durable(self.state)
        return decision

    def _wake(self, name: str | None) -> None:
        session = self.journal.wake(name) if name and name not in self.state.sessions else None
        if session is not None:
            self.state.sessions[session.name] = session

    def who(self, seat: int) -> Who:
        return Who(self.state.epoch, seat, self.state.workers[seat].incarnation)

    def ready(self, seat: int) -> None:
        self.tell(WorkerStarted(seat, self.state.workers[seat].incarnation, pid=100 + seat))
        self.tell(WorkerReady(self.who(seat)))

    def say(self, message: str, text: str, busy: BusyMode = BusyMode.QUEUE, session: str = "s") -> Decision:
        known = self.journal.known(message)
        return self.tell(TextArrived(session, message, f"key {message}", text, busy, known=known))

    def died(self, seat: int, words: str = "killed") -> None:
        proof = Proof(processes=3, all_dead=True, ms=4.5, how="pidns")
        self.tell(
            WorkerDied(seat, self.state.workers[seat].incarnation, proof, Reason(EndReason.EXITED, words))
        )

    def busy_seat(self) -> int:
        return next(seat for seat, worker in self.state.workers.items() if worker.session is not None)
