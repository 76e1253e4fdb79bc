"""Whatever page is lost, what is left is saved, agrees with itself and can be lived on; the old is kept."""

import shutil
from pathlib import Path

import pytest

from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.journal.errors import JournalDamaged, JournalError
from supervisor.journal.maintenance import check, stats
from supervisor.journal.repair import repair
from tests.journal.conftest import open_in
from tests.journal.lives import Life, accepted
from tests.journal.test_opening import PAGE_BYTES, ended

TURNS = 150


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with a history, something running and something waiting."""
    folder = tmp_path_factory.mktemp("whole")
    journal = open_in(folder)
    life = Life(journal)
    life.ready(0)
    life.say("m_open", "the running one", session="open")
    life.say("m_next", "the waiting one", session="open")
    history: list[Record] = [record for number in range(1, TURNS + 1) for record in ended("s", number)]
    journal.commit_now(history)
    journal.close()
    return folder


def hurt_page(whole: Path, folder: Path, page: int) -> Path:
    shutil.copytree(whole, folder)
    with open(folder / "journal.db", "r+b") as file:
        file.seek(page * PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)
    return folder / "journal.db"


def pages_of(folder: Path) -> int:
    return (folder / "journal.db").stat().st_size // PAGE_BYTES


def test_any_one_page_may_be_lost_and_the_rest_lives_on(whole: Path, tmp_path: Path) -> None:
    before = stats(whole / "journal.db")["rows"]
    least = dict(before)
    unsaved = 0
    for page in range(1, pages_of(whole)):
        path = hurt_page(whole, tmp_path / f"page{page}", page)
        try:
            repaired = repair(path)
        except JournalError:
            unsaved += 1  # a page of the schema itself: nothing can be told from anything
            continue
        kept = Path(repaired.kept)
        assert kept.read_bytes()[page * PAGE_BYTES :][:PAGE_BYTES] == b"\xff" * PAGE_BYTES
        assert check(path) == ()
        journal = open_in(path.parent)
        assert journal.epoch == 2
        Life(journal).say("m_new", "hello again")
        journal.close()
        for table, rows in stats(path)["rows"].items():
            least[table] = min(least[table], rows)
        shutil.rmtree(path.parent)
    assert unsaved <= 3
    # One page holds a handful of turns, or an index page that costs nothing.
    assert least["turns"] >= before["turns"] - 30
    assert least["messages"] >= before["messages"] - 30


def test_a_sound_journal_is_saved_whole(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "copy")
    path = tmp_path / "copy" / "journal.db"
    before = stats(path)["rows"]
    repaired = repair(path)
    assert repaired.unreadable == {}
    assert stats(path)["rows"] == before
    assert {table: rows for table, rows in before.items() if rows} == repaired.saved


def test_a_feed_that_lost_its_end_says_so_and_goes_on(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([accepted(1), accepted(2), accepted(3)])
    journal._writing.execute("DELETE FROM events WHERE seq = 3")
    journal.close()
    with pytest.raises(JournalDamaged, match="do not agree with their events"):
        open_in(tmp_path)
    repair(tmp_path / "journal.db")
    journal = open_in(tmp_path)
    told = journal.read.events_after("s", 0, 10)
    assert [(event.seq, event.type) for event in told] == [
        (1, "message.accepted"),
        (2, "message.accepted"),
        (4, "journal.repaired"),
    ]
    assert told[-1].fields == {"lost": 1}
    assert journal.load(Policy()).sessions["s"].seq == 4
    journal.close()


def test_a_log_cut_short_under_a_file_that_is_ahead_is_found_and_mended(tmp_path: Path) -> None:
    """The file has pages that the log no longer knows: no order of writes can have left it so."""
    whole = tmp_path / "whole"
    whole.mkdir()
    journal = open_in(whole)
    for number in range(1, 60):
        journal.commit_now(ended("s", number))
    journal.close()
    journal = open_in(whole)
    for number in range(60, 120):
        journal.commit_now(ended("s", number))
    journal._writing.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    shutil.copy(whole / "journal.db", tmp_path / "ahead.db")
    log = (whole / "journal.db-wal").read_bytes()
    journal.close()
    frame = PAGE_BYTES + 24
    frames = (len(log) - 32) // frame
    found = 0
    for kept in range(frames // 10, frames, frames // 10):
        folder = tmp_path / f"frames{kept}"
        folder.mkdir()
        shutil.copy(tmp_path / "ahead.db", folder / "journal.db")
        (folder / "journal.db-wal").write_bytes(log[: 32 + kept * frame])
        before = (folder / "journal.db").read_bytes(), (folder / "journal.db-wal").read_bytes()
        try:
            open_in(folder).close()
        except JournalDamaged:
            # A start that was refused has changed nothing.
            assert before == ((folder / "journal.db").read_bytes(), (folder / "journal.db-wal").read_bytes())
            found += 1
            repair(folder / "journal.db")
            open_in(folder).close()
        assert check(folder / "journal.db") == ()
    assert found > 0
