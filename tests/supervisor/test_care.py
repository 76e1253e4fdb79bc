"""Maintenance requests beside the service: how many at once, by which limits, and their end at a stop."""

import asyncio
import io
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipc.errors import PlaceError
from ipc.messages import Answer, Care, Refused, Table
from ipc.paging import Row
from supervisor import care
from supervisor.config.live import Live
from supervisor.config.settings import Keeping, Settings
from supervisor.containment import Containment
from supervisor.journal import journal as file_journal
from supervisor.journal import maintenance
from supervisor.journal.asking import InPlace
from supervisor.journal.errors import JournalUnwritable
from supervisor.telemetry.log import Log
from tests.journal.conftest import open_in
from tests.journal.lives import accepted
from tests.journal.test_care import fill, seqs
from tests.journal.test_opening import ended
from tests.no_containment import uncontained
from tests.supervisor.fixed_clock import NOW, FixedClock
from tests.waiting import nothing_follows, soon

# All turns of these tests ended in the first minute of the clock.
OLD = f"{NOW - 60:.0f}s"
SMALL_BYTES = 1


class PretendServer:
    """A journal on a server, with a finding."""

    asking = InPlace()

    def check(self) -> tuple[str, ...]:
        return ("a gap",)

    def stats(self) -> Row:
        return {"turns": 3}


class Desk:
    """A journal with a few ended turns and its care; a test may hold the threads of requests up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = open_in(folder)
        fill(self.journal, sessions=1, turns=3)
        self.live = Live(Settings())
        self.replies: list[Answer] = []
        self.server: PretendServer | None = None
        self.prunings = 0
        self.fault: PlaceError | None = None
        self.may_begin = threading.Event()
        self.may_begin.set()

    def run(self, story: Callable[[care.Care], Awaitable[None]]) -> None:
        async def act() -> None:
            log = Log(FixedClock(), io.StringIO())
            made = care.Care(
                journal=self.journal,
                path=self.folder / "journal.db",
                check=self._check,
                live=self.live,
                clock=FixedClock(),
                log=log,
                pruned=self._pruned,
                contain=uncontained(),
                server=self.server,
            )
            try:
                await story(made)
            finally:
                self.may_begin.set()

        asyncio.run(act())

    async def asked(self, care: care.Care, request: Care) -> Answer:
        before = len(self.replies)
        care.request_arrived(request, self.replies.append)
        await soon(lambda: len(self.replies) > before)
        return self.replies[-1]

    def keep(self, seconds: float, bytes_max: int) -> None:
        self.live.settings = Settings(journal=Keeping(keep_seconds=seconds, bytes_max=bytes_max))

    @property
    def turns(self) -> int:
        return len(seqs(self.journal, "s0")) // 3

    def _check(self, folder: Path) -> None:
        assert folder == self.folder
        self.may_begin.wait()
        if self.fault is not None:
            raise self.fault

    def _pruned(self) -> None:
        self.prunings += 1


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.journal.close()


def test_four_requests_are_served_at_once_and_others_as_these_end(desk: Desk) -> None:
    async def story(care: care.Care) -> None:
        for _ in range(2):
            desk.replies.clear()
            desk.may_begin.clear()
            for _ in range(4):
                care.request_arrived(Care("stats"), desk.replies.append)
            refused = await desk.asked(care, Care("stats"))
            assert isinstance(refused, Refused)
            assert (refused.code, len(desk.replies)) == ("full", 1)
            desk.may_begin.set()
            await soon(lambda: len(desk.replies) == 5)
            assert all(isinstance(each, Table) for each in desk.replies[1:])

    desk.run(story)


def test_a_replaced_folder_is_not_read(desk: Desk) -> None:
    desk.fault = PlaceError("the folder was replaced", "put it back")

    async def story(care: care.Care) -> None:
        refused = await desk.asked(care, Care("check"))
        assert isinstance(refused, Refused)
        assert (refused.error, refused.hint, refused.code) == (
            "the folder was replaced",
            "put it back",
            "invalid",
        )

    desk.run(story)


def test_a_stop_ends_a_backup_without_a_copy_and_without_an_answer(desk: Desk, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"

    async def story(care: care.Care) -> None:
        desk.may_begin.clear()
        before = threading.active_count()
        care.request_arrived(Care("backup", file=str(copy)), desk.replies.append)
        care.close()
        desk.may_begin.set()
        await soon(lambda: threading.active_count() == before)
        await asyncio.sleep(0)

    desk.run(story)
    assert not copy.exists()
    assert not desk.replies


def test_a_stop_ends_a_pruning(desk: Desk) -> None:
    async def story(care: care.Care) -> None:
        care.request_arrived(Care("prune", older=OLD), desk.replies.append)
        care.close()
        # Behind a slice of the pruning in the journal's queue, had it begun.
        for number in (1, 2):
            await desk.journal.commit([accepted(number, "other")])

    desk.run(story)
    assert desk.journal.read.turn_story("s0/1") is not None
    assert not desk.replies


def test_the_journal_is_pruned_once_at_a_time(desk: Desk) -> None:
    async def story(care: care.Care) -> None:
        for _ in range(2):
            care.request_arrived(Care("prune", older=OLD), desk.replies.append)
        [refused] = desk.replies
        assert isinstance(refused, Refused)
        assert (refused.code, refused.retry_after_seconds) == ("conflict", 5.0)
        await soon(lambda: len(desk.replies) == 2)
        assert isinstance(await desk.asked(care, Care("prune", older=OLD)), Table), "and again afterwards"

    desk.run(story)


@pytest.mark.parametrize(
    ("settings", "request_", "left"),
    [
        ((NOW, SMALL_BYTES), Care("prune", older=f"{NOW:.0f}s"), 3),
        ((60, 2**40), Care("prune", keep="1TiB"), 3),
        ((60, 2**40), Care("prune"), 0),
        ((NOW, SMALL_BYTES), Care("prune"), 0),
        ((NOW, 2**40), Care("prune"), 3),
        ((NOW, 2**40), Care("prune", older=OLD), 0),
        ((NOW, 2**40), Care("prune", older=OLD.removesuffix("s")), 0),
        ((NOW, 2**40), Care("prune", keep="1"), 0),
    ],
    ids=["age only", "size only", "set age", "set size", "neither", "older", "seconds", "bytes"],
)
def test_a_request_is_pruned_by_its_own_limits_or_by_the_settings(
    desk: Desk, settings: tuple[float, int], request_: Care, left: int
) -> None:
    desk.keep(*settings)

    async def story(care: care.Care) -> None:
        assert isinstance(await desk.asked(care, request_), Table)

    desk.run(story)
    assert desk.turns == left
    assert desk.prunings == (left == 0), "told only when something is gone"


def test_it_is_pruned_at_the_start_and_again_on_schedule(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(care, "_PRUNE_SECONDS", 0.0)
    desk.keep(NOW, SMALL_BYTES)

    async def story(care: care.Care) -> None:
        care.open()
        await soon(lambda: not desk.turns)
        desk.journal.commit_now(ended("s0", 4))
        assert desk.turns == 1
        await soon(lambda: not desk.turns)
        care.close()
        await nothing_follows()

    desk.run(story)


def test_a_pruning_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_journal, "_BUSY_SECONDS", 0.05)
    desk = Desk(tmp_path)

    async def story(care: care.Care) -> None:
        with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = await desk.asked(care, Care("prune", older=OLD))
            assert isinstance(refused, Refused)
            assert (refused.code, refused.retry_after_seconds) == ("unavailable", 5.0)
            other.execute("ROLLBACK")
        assert isinstance(await desk.asked(care, Care("prune", older=OLD)), Table)

    desk.run(story)
    desk.journal.close()


@pytest.mark.parametrize(
    "file", [None, "copy.db", "/", "/tmp/a\0b"], ids=["none", "relative", "root", "zero"]
)
def test_a_backup_needs_the_whole_path_of_its_file(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    """A relative one would lie in the folder of the service, and not in that of who asks."""
    monkeypatch.chdir(tmp_path)

    async def story(care: care.Care) -> None:
        refused = await desk.asked(care, Care("backup", file=file))
        assert isinstance(refused, Refused)
        assert (refused.error, refused.code) == ("a backup needs the whole path of its file", "invalid")

    desk.run(story)
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("request_", [Care("prune", older="soon"), Care("prune", keep="much")])
def test_a_limit_that_cannot_be_read_prunes_nothing(desk: Desk, request_: Care) -> None:
    desk.keep(60, SMALL_BYTES)

    async def story(care: care.Care) -> None:
        refused = await desk.asked(care, request_)
        assert isinstance(refused, Refused)
        assert (refused.error, refused.code) == (
            f"{request_.older or request_.keep} cannot be used",
            "invalid",
        )

    desk.run(story)
    assert desk.turns == 3


def test_a_journal_on_a_server_is_asked_there_and_not_copied(desk: Desk, tmp_path: Path) -> None:
    desk.server = PretendServer()

    async def story(care: care.Care) -> None:
        damaged = {"file": "", "ok": False, "findings": ("a gap",)}
        assert await desk.asked(care, Care("check")) == Table((damaged,))
        assert await desk.asked(care, Care("stats")) == Table(({"turns": 3},))
        refused = await desk.asked(care, Care("backup", file=str(tmp_path / "copy.db")))
        assert isinstance(refused, Refused)
        assert (refused.hint, refused.code) == ("use pg_dump", "invalid")

    desk.run(story)
    assert not (tmp_path / "copy.db").exists()


def test_a_server_that_does_not_answer_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.server = PretendServer()

    def fail() -> Row:
        raise JournalUnwritable("no answer", "start it")

    monkeypatch.setattr(desk.server, "stats", fail)

    async def story(care: care.Care) -> None:
        refused = await desk.asked(care, Care("stats"))
        assert refused == Refused("no answer", "start it", code="unavailable")

    desk.run(story)


def test_requests_that_break_take_no_place_of_later_ones(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> Row:
        raise LookupError("not foreseen")

    async def story(care: care.Care) -> None:
        care._contain = Containment(Log(FixedClock(), io.StringIO()), lambda: 0.0, lambda place: None)
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "stats", broken)
            for _ in range(5):
                refused = await desk.asked(care, Care("stats"))
                assert isinstance(refused, Refused)
                assert refused.code == "internal"
        assert isinstance(await desk.asked(care, Care("stats")), Table)

    desk.run(story)
