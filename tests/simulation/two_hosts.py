"""Two hosts and the tables that they share, in memory; rules, decider and owners are the real ones.

Each host is a world with an engine of its own. What takes time is a step of its own, and any other step may
come in between: a read by a thread, its answer, a look of the keeper, a batch between its decision and its
commit. A host may be stopped, as by SIGSTOP, or die; when its lease is over, the other one may end its life,
and by then its guard has ended its processes.

Checked with every commit: the host that writes about a session has it, and its life is not gone. With every
attempt: no process of either host has the session. In the end: every message has ended, once (`Witness`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from supervisor.core import events
from supervisor.core.effects import Accepted, Answer
from supervisor.core.policy import Policy
from supervisor.core.records import AttemptOpened, Record
from supervisor.core.state import BusyMode, State, Who
from supervisor.journal.errors import JournalEnded
from supervisor.journal.ownership import Found, Here
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.lease_keeper import Look, OtherHost
from supervisor.journal.postgres.owners import Owners
from tests.invariants import Witness, check_owner
from tests.memory_journal import MemoryJournal
from tests.pretend_processes import Process
from tests.simulation.settling import be_kind
from tests.simulation.shared_tables import HostJournal, Keeper, Server, Threads
from tests.world import World

SESSIONS = ("s", "t", "u")


class SharedWitness(Witness):
    """A batch may be committed after one that another host has decided later."""

    @property
    def newest_at(self) -> float:
        return 0.0

    @newest_at.setter
    def newest_at(self, at: float) -> None: ...


class HostWorld(World):
    """One host. `is_stopped`: as by SIGSTOP; nothing of it moves."""

    def __init__(self, hosts: "TwoHosts", policy: Policy) -> None:
        self._hosts = hosts
        self.is_stopped = False
        self.in_flight: list[Record] | None = None
        super().__init__(policy, HostJournal(hosts.server))

    @property
    def life(self) -> int:
        return self.journal.epoch

    @property
    def now(self) -> float:
        """Both hosts have the same clock."""
        return self._hosts.now

    @now.setter
    def now(self, at: float) -> None:
        self._hosts.now = max(at, self._hosts.now)

    def _load(self) -> None:
        self.witness = self._hosts.witness
        server, journal = self._hosts.server, self.journal
        assert isinstance(journal, HostJournal)
        journal.in_memory = tuple
        server.adopt_left(self.life, MemoryJournal.load(journal, self.policy).sessions)
        super()._load()
        state = self.state
        journal.in_memory = lambda: state.sessions
        self.keeper, self.threads, self.in_flight = Keeper(), Threads(server), None
        self.looks: list[Look] = []
        owners: Any = Owners
        host = Host("host", "place", has_local_files=False)
        self.owners: Owners = owners(self.keeper, self.threads, self.threads, self.life, host)
        self.owners._owned = {name: 0 for name, each in server.owners.items() if each.life == self.life}
        self.owners.open(self, lambda: self._queue.undecided(), lambda: self.now, lambda error: None)

    def post(self, *happened: Any) -> None:
        """As the engine's: an event and what is called with its answer; or the events of a sentence."""
        if len(happened) == 2 and callable(happened[1]):
            event, answer = happened

            def answered(given: Answer) -> None:
                self._answered(given)
                answer(given)

            self._pending += 1
            self._queue.post(event, answered)
        else:
            super().post(*happened)

    def _commit(self, records: Sequence[Record]) -> None:
        super()._commit(records)
        for record in records:
            if isinstance(record, AttemptOpened):
                check_owner(record, {**self._hosts.processes_beside(self), **self.processes})

    def _written(self) -> None:
        """What a life that is gone decides without a record has no effect that lasts: its keeper ends it."""
        if self._hosts.server.gone[self.life]:
            raise JournalEnded("this life is gone", "begin another")
        super()._written()

    def _own(self, state: State) -> State:
        """What another host has is not loaded."""
        return state

    def decide_batch(self) -> None:
        self.in_flight = self._take()

    def finish_batch(self) -> None:
        records, self.in_flight = self.in_flight or [], None
        self._commit(records)
        self._written()

    def look(self) -> None:
        """The keeper's thread; the loop hears of it later."""
        if self._hosts.server.gone[self.life]:
            raise JournalEnded("this life is gone", "begin another")
        released, self.keeper.released = self.keeper.released, []
        marked, self.keeper.marked = self.keeper.marked, []
        given = self._hosts.server.look(self.life, released, marked)
        other = self._hosts.other(self)
        there = () if self._hosts.server.gone[other.life] else (_seen(other),)
        self.looks.append(Look(there, tuple(given), began=self.keeper.stamp))


def _seen(other: HostWorld) -> OtherHost:
    standing = other.keeper.standing
    return OtherHost(other.life, "other", frozenset(), standing.state, standing.seats, standing.free)


@dataclass
class Message:
    """A client repeats it by its key until it is answered."""

    id: str
    session: str
    busy: BusyMode
    is_accepted: bool = False


class TwoHosts:
    """A day: `act` lets one thing happen, chosen by lot; `settle` lets everything end."""

    def __init__(self, lot: Random) -> None:
        self.lot = lot
        self.now = 0.0
        self.server = Server()
        self.witness = SharedWitness()
        self.hosts: list[HostWorld] = []
        self.messages: list[Message] = []
        self._ids = count(1)
        for _ in range(2):
            self.hosts.append(
                HostWorld(self, Policy(busy_seats=1, spares=lot.choice((0, 1)), attempts_max=100))
            )

    def other(self, host: HostWorld) -> HostWorld:
        found = [each for each in self.hosts if each is not host]
        return found[0] if found else host

    def processes_beside(self, host: HostWorld) -> dict[Who, Process]:
        """The processes of the other host; what a life that is gone decides is not done."""
        other = self.other(host)
        is_gone = self.server.gone[other.life]
        return {who: each for who, each in other.processes.items() if not is_gone or each.session}

    def act(self) -> None:
        host = self.lot.choice(self.hosts)
        if host.is_stopped:
            self._act_on_stopped(host)
            return
        choices = [self._say, self._read, self._answer, self._look, self._hear, self._batch, self._work]
        act = self.lot.choices([*choices, self._end], [4, 6, 6, 3, 3, 6, 6, 1])[0]
        self._guarded(host, act)
        self.check()

    def _guarded(self, host: HostWorld, act: Callable[[HostWorld], None]) -> None:
        """A life that finds itself gone ends its process, and the next start begins another."""
        try:
            act(host)
        except JournalEnded:
            host.crash()

    def _act_on_stopped(self, host: HostWorld) -> None:
        if self.lot.random() < 0.3:
            host.is_stopped = False
        elif not self.server.gone[host.life] and not self.other(host).is_stopped:
            # Its guard has ended its processes before its lease was over.
            for process in host.processes.values():
                process.is_dead = True
            self.server.gone[host.life] = True

    def _say(self, host: HostWorld) -> None:
        if self.lot.random() < 0.5 or not self.messages:
            busy = self.lot.choice((BusyMode.QUEUE, BusyMode.INTERRUPT, BusyMode.COLLECT))
            self.messages.append(Message(f"m{next(self._ids)}", self.lot.choice(SESSIONS), busy))
        self.submit(host, self.lot.choice(self.messages))

    def submit(self, host: HostWorld, message: Message) -> None:
        def found(where: Found) -> None:
            if isinstance(where, Here):
                host.post(self._arrived(host, message), answered)

        def answered(answer: Answer) -> None:
            assert isinstance(answer, Accepted), f"{answer}"
            message.is_accepted = True

        host.owners.claim(message.session, found, lambda error: None)

    def _arrived(self, host: HostWorld, message: Message) -> events.TextArrived:
        return events.TextArrived(message.session, message.id, f"key-{message.id}", "words", message.busy)

    def _read(self, host: HostWorld) -> None:
        if host.threads.reads:
            host.threads.reads.pop(self.lot.randrange(len(host.threads.reads)))()

    def _answer(self, host: HostWorld) -> None:
        if host.threads.answers:
            host.threads.answers.pop(self.lot.randrange(len(host.threads.answers)))()

    def _look(self, host: HostWorld) -> None:
        host.look()

    def _hear(self, host: HostWorld) -> None:
        if host.looks:
            host.owners._looked(host.looks.pop(0))

    def _batch(self, host: HostWorld) -> None:
        if host.in_flight is not None:
            host.finish_batch()
        elif host.is_urgent:
            host.decide_batch()

    def _work(self, host: HostWorld) -> None:
        """Workers start, answer or die; time passes."""
        if host.in_flight is not None or host.is_urgent:
            return
        self.now += 0.2
        jobs = [each for each in host.processes.values() if each.job is not None and each.is_heard]
        if jobs and self.lot.random() < 0.5:
            chosen = self.lot.choice(jobs)
            assert chosen.job is not None
            if self.lot.random() < 0.7:
                host.finishes(chosen.job.turn)
            else:
                host.dies(chosen.who.seat)
        else:
            for process in list(host.processes.values()):
                if process.is_killed and not process.is_dead:
                    host.dies(process.who.seat, "killed")
            host.worker_ready()

    def _end(self, host: HostWorld) -> None:
        if self.lot.random() < 0.5:
            host.is_stopped = True
        else:
            host.crash()

    def check(self) -> None:
        """A session in the memory of a life that is not gone is that life's alone."""
        for host in self.hosts:
            if not self.server.gone[host.life]:
                for name in host.state.sessions:
                    owner = self.server.owners.get(name)
                    assert owner is not None, f"{name} is in memory, and no host has it"
                    assert owner.life == host.life, f"{name} is in memory at {host.life}, and is {owner}"

    def settle(self) -> None:
        """Everything works from now on: every message is accepted, and ends."""
        for host in self.hosts:
            host.is_stopped = False
        for _ in range(300):
            unended = self.witness.accepted.keys() - self.witness.fates().keys()
            if not unended and all(each.is_accepted for each in self.messages):
                return
            for host in self.hosts:
                for message in self.messages:
                    if not message.is_accepted:
                        self.submit(host, message)
                self._guarded(host, self._settle)
                self.check()
        raise AssertionError(f"left alone, yet {sorted(unended)} never ended")

    def _settle(self, host: HostWorld) -> None:
        if host.in_flight is not None:
            host.finish_batch()
        host.look()
        while host.looks:
            self._hear(host)
        while host.threads.reads or host.threads.answers:
            self._read(host)
            self._answer(host)
        if host.is_urgent:
            host.step()
        self.now += 0.5
        be_kind(host)
