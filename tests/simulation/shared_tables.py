"""What two simulated hosts share, and the threads of each by which it reads and writes it, in memory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from supervisor.core.policy import Policy
from supervisor.core.records import Record, SessionGiven
from supervisor.core.state import State
from supervisor.journal.errors import JournalEnded
from supervisor.journal.postgres.lease_keeper import Standing
from tests.memory_journal import MemoryJournal


@dataclass
class Owner:
    life: int
    claim: int
    taken: bool


@dataclass
class Server:
    """What the database has: `gone` by life, the owner of each session, and the rows of the journal."""

    journal: MemoryJournal = field(default_factory=MemoryJournal)
    gone: dict[int, bool] = field(default_factory=dict)
    owners: dict[str, Owner] = field(default_factory=dict)

    def begin(self, former: int) -> int:
        """As a start on the same host does: what its former life had belongs to the next one."""
        life = len(self.gone) + 1
        self.gone[life] = False
        self.gone[former] = True
        for owner in self.owners.values():
            if owner.life == former:
                owner.life, owner.claim, owner.taken = life, 0, True
        return life

    def adopt_left(self, life: int, names: Iterable[str]) -> None:
        for name in names:
            if self._is_free(name):
                self.owners[name] = Owner(life, 0, taken=True)

    def _is_free(self, name: str) -> bool:
        return name not in self.owners or self.gone[self.owners[name].life]

    def claim(self, name: str, life: int, number: int) -> Owner:
        owner = self.owners.setdefault(name, Owner(life, number, taken=True))
        if self.gone[owner.life]:
            owner = self.owners[name] = Owner(life, number, taken=False)
        elif owner.life == life:
            owner.claim = max(owner.claim, number)
        return owner

    def look(self, life: int, released: list[tuple[str, int]], marked: list[str]) -> list[str]:
        """One look of the keeper; returns what was given to this life."""
        for name in marked:
            if name in self.owners and self.owners[name].life == life:
                self.owners[name].taken = True
        for name, claim in released:
            if self.owners.get(name) == Owner(life, claim, taken=True):
                del self.owners[name]
        for name, owner in self.owners.items():
            if self.gone[owner.life]:
                self.owners[name] = Owner(life, 0, taken=False)
        return [name for name, owner in self.owners.items() if owner.life == life and not owner.taken]


class HostJournal(MemoryJournal):
    """The journal as one host uses it: it loads what it has, and a life that is gone writes nothing."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._book = server.journal._book
        self.epoch = self.transactions = 0
        self.in_memory: Callable[[], Iterable[str]] = tuple
        server.gone[0] = True
        self.new_life()

    def new_life(self) -> None:
        self.epoch = self._server.begin(self.epoch)

    def load(self, policy: Policy) -> State:
        state = super().load(policy)
        own = {name for name, owner in self._server.owners.items() if owner.life == self.epoch}
        taken = {name for name in own if self._server.owners[name].taken}
        for name in state.sessions.keys() - taken.union(own.intersection(self.in_memory())):
            del state.sessions[name]
        return state

    def commit_now(self, records: Sequence[Record]) -> None:
        if self._server.gone[self.epoch]:
            raise JournalEnded("this life is gone", "begin another")
        for record in records:
            owner = self._server.owners.get(record.session)
            assert owner is not None, f"{record} of a session that no host has"
            assert owner.life == self.epoch, f"{record} by life {self.epoch}, which does not have the session"
            if isinstance(record, SessionGiven):
                self._server.owners[record.session] = Owner(record.to_life, 0, taken=False)
        super().commit_now(records)


class Keeper:
    """The keeper's thread: it looks when it is told to."""

    def __init__(self) -> None:
        self.standing = Standing()
        self.stamp = 0
        self.released: list[tuple[str, int]] = []
        self.marked: list[str] = []

    def open(self, looked: object, ended: object, may_have: object) -> None: ...
    def nudge(self) -> None: ...

    def release(self, claims: list[tuple[str, int]]) -> None:
        self.released += claims

    def mark_taken(self, sessions: list[str]) -> None:
        self.marked += sessions

    def unmark(self, sessions: list[str]) -> None:
        self.marked = [each for each in self.marked if each not in sessions]


class Threads:
    """Reads that were asked for, and answers that are on their way to the loop; each takes its time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.reads: list[Callable[[], Any]] = []
        self.answers: list[Callable[[], None]] = []

    def ask(self, read: Callable[[], Any], then: Callable[[Any], None], failed: object) -> None:
        def run() -> None:
            found = read()
            self.answers.append(lambda: then(found))

        self.reads.append(run)

    def run(self, use: Callable[[Any], Any]) -> Any:
        return use(self)

    def execute(self, sql: str, values: tuple[str, int, int, bool, str | None]) -> "_Row":
        session, life, number, _, _ = values
        assert "claim_session" in sql
        return _Row(self._server.claim(session, life, number))


@dataclass
class _Row:
    owner: Owner

    def fetchone(self) -> dict[str, Any]:
        return {"owner": self.owner.life, "is_taken": self.owner.taken}
