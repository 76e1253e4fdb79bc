"""Which sessions a host claims, and which it gives away to whom; keeper, engine and rows are played."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from supervisor.core.events import DrainAsked, SessionsToGive, UndrainAsked
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, Intake, Message, Place, Session, State, Turn
from supervisor.journal.asking import InPlace
from supervisor.journal.ownership import Elsewhere, Found
from supervisor.journal.postgres import owners as owning
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.lease_keeper import Look, OtherHost, Standing
from supervisor.journal.postgres.owners import Owners
from tests.hosts.test_notices import never
from tests.simulation.shared_tables import Keeper

NONE: frozenset[str] = frozenset()


def other(life: int, free: int, labels: Iterable[str] = (), state: str = "open") -> OtherHost:
    return OtherHost(life, f"host {life}", frozenset(labels), state, 4, free)


class Stage:
    """A host of one seat; `posted` is what its engine was told, `claims` what the database was asked."""

    def __init__(self, has_local_files: bool = False) -> None:
        self.state = State(Policy(busy_seats=1))
        self.now = 100.0
        self.posted: list[Any] = []
        self.answers: list[Callable[[object], None]] = []
        self.claims: list[tuple[Any, ...]] = []
        self.owner = 0
        self.labels: dict[str, tuple[str, ...]] = {}
        self.keeper = Keeper()
        stage: Any = self
        owners: Any = Owners
        host = Host("here", "here", has_local_files=has_local_files)
        self.owners: Owners = owners(self.keeper, stage, InPlace(), 1, host)
        self.owners.labels_of = lambda session: self.labels.get(session, ())
        self.owners.open(stage, tuple, lambda: self.now, lambda error: None)

    def post(self, event: Any, answer: Callable[[object], None]) -> None:
        self.posted.append(event)
        self.answers.append(answer)

    def run(self, use: Callable[[Any], Any]) -> Any:
        return use(self)

    def execute(self, sql: str, values: tuple[Any, ...]) -> "Stage":
        self.claims.append(values)
        return self

    def fetchone(self) -> dict[str, int]:
        return {"owner": self.owner, "is_taken": 1}

    def queue(self, *names: str, seconds: float = 1.0, turns: int = 1) -> None:
        """Sessions whose turn waits for a seat for so long."""
        for name in names:
            self.state.sessions[name] = Session(
                name, 1, turns, turn=Turn(f"{name}/{turns}", name, (), 0.0, "default")
            )
            self.state.queued[name] = Place(1, self.now - seconds)

    def is_full(self) -> None:
        self.state.busy[0] = None

    def look(self, *hosts: OtherHost, asked: str = "") -> dict[int, tuple[str, ...]]:
        """What is given to which life after a look that has found these hosts."""
        before = len(self.posted)
        self.owners._looked(Look(hosts, (), asked))
        return {each.life: each.sessions for each in self.posted[before:] if isinstance(each, SessionsToGive)}


def play(act: Callable[[], None]) -> None:
    async def run() -> None:
        act()

    asyncio.run(run())


def test_what_has_queued_for_long_is_given_to_hosts_with_free_seats_as_many_as_they_have() -> None:
    def act() -> None:
        stage = Stage()
        stage.is_full()
        stage.queue("a", "b", "c", "d")
        given = stage.look(other(2, 1), other(3, 2), other(4, 0))
        assert {life: len(names) for life, names in given.items()} == {2: 1, 3: 2}
        assert sorted(given[2] + given[3]) == ["a", "b", "c"]

    play(act)


def test_a_turn_that_has_just_queued_waits_for_a_seat_here_first() -> None:
    def act() -> None:
        stage = Stage()
        stage.is_full()
        stage.queue("a", seconds=0.2)
        assert not stage.look(other(2, 4))
        stage.now += 0.2
        assert stage.look(other(2, 4)) == {2: ("a",)}

    play(act)


def test_a_host_with_a_free_seat_gives_nothing_unless_it_drains() -> None:
    def act() -> None:
        stage = Stage()
        stage.queue("a")
        assert not stage.look(other(2, 1))
        stage.state.intake = Intake.DRAINING
        assert stage.look(other(2, 1)) == {2: ("a",)}

    play(act)


def test_a_host_that_drains_gives_also_what_has_no_turn_yet() -> None:
    def act() -> None:
        stage = Stage()
        stage.queue("a")
        session = stage.state.sessions["a"]
        session.turn = None
        stage.state.queued.clear()
        stage.state.openable["a"] = None
        session.waiting.append(Message("m_1", "hello", BusyMode.QUEUE, 1.0))
        stage.is_full()
        assert not stage.look(other(2, 1))
        stage.state.intake = Intake.DRAINING
        assert stage.look(other(2, 1)) == {2: ("a",)}

    play(act)


def test_a_host_that_was_given_something_is_left_alone_for_a_moment() -> None:
    def act() -> None:
        stage = Stage()
        stage.is_full()
        stage.queue("a")
        assert stage.look(other(2, 4)) == {2: ("a",)}
        stage.queue("b")
        stage.now += 0.9
        assert not stage.look(other(2, 4)), "how many seats it has free was reported before"
        stage.now += 0.2
        assert stage.look(other(2, 4)) == {2: ("b",)}

    play(act)


def test_a_session_that_has_files_here_is_not_given() -> None:
    def act() -> None:
        stage = Stage(has_local_files=True)
        stage.is_full()
        stage.queue("old", turns=2)
        stage.queue("new", turns=1)
        assert stage.look(other(2, 4)) == {2: ("new",)}

    play(act)


def test_a_session_is_given_to_hosts_with_its_labels_only() -> None:
    def act() -> None:
        stage = Stage()
        stage.is_full()
        stage.labels = {"a": ("gpu",)}
        stage.queue("a")
        assert not stage.look(other(2, 4), other(3, 4, ["gpu"], "draining"))
        assert stage.look(other(2, 4), other(3, 1, ["gpu", "fast"])) == {3: ("a",)}

    play(act)


def test_a_host_claims_what_it_may_have_unless_it_drains_and_another_is_open() -> None:
    def act() -> None:
        stage = Stage()
        stage.owners.others = (other(2, 4),)
        stage.labels = {"b": ("gpu",)}
        fits = []
        for session, state in (("a", "open"), ("b", "open"), ("a", "draining")):
            stage.keeper.standing = Standing(state)
            stage.owners.claim(session, lambda found: None, never)
            fits.append(stage.claims[-1][3])
        stage.owners.others = (other(2, 4, state="draining"),)
        stage.owners.claim("a", lambda found: None, never)
        assert [*fits, stage.claims[-1][3]] == [True, False, False, True]

    play(act)


def test_a_session_of_no_host_goes_to_the_one_with_most_free_seats_that_may_have_it() -> None:
    def act() -> None:
        stage, found = Stage(), list[Found]()
        stage.labels = {"a": ("gpu",)}
        stage.owners.others = (other(2, 9), other(3, 1, ["gpu"]), other(4, 2, ["gpu"]))
        stage.owners.claim("a", found.append, never)
        stage.owners.others = ()
        stage.owners.claim("a", found.append, never)
        assert found == [Elsewhere(4, "host 4"), Elsewhere(0, "")]

    play(act)


def test_claims_are_numbered_on_from_those_of_the_image_before() -> None:
    """A release of an earlier claim must not end a later one."""

    def act() -> None:
        stage = Stage()
        stage.run = lambda use: {"old": 7}  # type: ignore[method-assign]
        assert stage.owners.adopt_left() == ["old"]
        del stage.run
        stage.owners.claim("new", lambda found: None, never)
        assert stage.claims[-1][2] == 8

    play(act)


def test_of_the_sessions_that_have_left_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owning, "_LEFT_MAX", 2)

    def act() -> None:
        stage = Stage()
        stage.owner = 1
        for session in ("a", "b", "a", "c"):
            stage.owners.claim(session, lambda found: None, never)
            stage.look()
        assert [name for name, _ in stage.keeper.released] == ["a", "b", "a", "c"]
        assert list(stage.owners._left) == ["a", "c"]

    play(act)


def test_seats_for_which_turns_wait_here_are_not_told_as_free() -> None:
    def act() -> None:
        stage = Stage()
        free = []
        for names in ((), ("a",), ("b", "c")):
            stage.queue(*names)
            stage.look()
            free.append(stage.keeper.standing.free)
        assert free == [1, 0, 0]

    play(act)


def test_what_an_operator_asks_for_elsewhere_is_done_here() -> None:
    def act() -> None:
        stage = Stage()
        for asked in ("draining", "open", ""):
            stage.look(asked=asked)
        assert stage.posted == [DrainAsked(), UndrainAsked()]

    play(act)
