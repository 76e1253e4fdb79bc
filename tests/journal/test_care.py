"""Copies, counts, exports and forgetting, beside a journal that is being written."""

import asyncio
import math
import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from ipc.errors import BadPlace
from ipc.messages import Table
from supervisor.core.policy import Policy
from supervisor.core.records import CursorMoved, MessageDropped
from supervisor.journal import maintenance, prune
from supervisor.journal.errors import JournalError
from supervisor.journal.file_store import FileStore
from supervisor.journal.journal import Journal
from supervisor.journal.prune import Pruning
from tests.journal.conftest import every_journal, open_in
from tests.journal.lives import Life, accepted
from tests.journal.test_fences import DYING
from tests.journal.test_opening import ended


def fill(journal: Journal, sessions: int = 3, turns: int = 40) -> None:
    for number in range(1, turns + 1):
        for session in range(sessions):
            journal.commit_now(ended(f"s{session}", number))


def seqs(journal: Journal, session: str) -> list[int]:
    return [event.seq for event in journal.read.events_after(session, 0, 10_000)]


def test_a_backup_is_whole_while_others_write(tmp_path: Path, journal: Journal) -> None:
    fill(journal, 1, 100)

    def write_on() -> bool:
        journal.commit_now([accepted(1, f"late{journal.transactions}")])
        return False

    made = maintenance.backup(tmp_path / "journal.db", tmp_path / "copy.db", write_on)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert made["bytes"] == (tmp_path / "copy.db").stat().st_size
    assert maintenance.check(tmp_path / "copy.db") == ()
    assert maintenance.stats(tmp_path / "copy.db")["rows"]["turns"] == 100
    assert [path.name for path in tmp_path.glob("copy.db*")] == ["copy.db"]
    with pytest.raises(JournalError, match="exists already"):
        maintenance.backup(tmp_path / "journal.db", tmp_path / "copy.db", lambda: False)


def test_a_backup_that_is_given_up_leaves_nothing(tmp_path: Path, journal: Journal) -> None:
    fill(journal, 1, 10)
    with pytest.raises(JournalError, match="given up"):
        maintenance.backup(tmp_path / "journal.db", tmp_path / "copy.db", lambda: True)
    assert list(tmp_path.glob("copy*")) == []


def test_a_backup_put_in_place_is_lived_on(tmp_path: Path, journal: Journal) -> None:
    fill(journal, 1, 5)
    (tmp_path / "other").mkdir()
    maintenance.backup(tmp_path / "journal.db", tmp_path / "other" / "journal.db", lambda: False)
    restored = open_in(tmp_path / "other")
    assert seqs(restored, "s0") == seqs(journal, "s0")
    Life(restored).say("m_new", "hello", session="s0")
    restored.close()


def export(path: Path, session: str | None) -> list[Table]:
    pages = [maintenance.export_page(path, session, "")]
    while pages[-1].more:
        pages.append(maintenance.export_page(path, session, pages[-1].more))
    return pages


def test_an_export_has_every_row_once_in_pages(tmp_path: Path, journal: Journal) -> None:
    fill(journal)
    pages = export(tmp_path / "journal.db", None)
    rows = [row for page in pages for row in page.rows]
    counted = maintenance.stats(tmp_path / "journal.db")["rows"]
    for table in ("sessions", "messages", "turns", "events"):
        assert sum(row["table"] == table for row in rows) == counted[table]
    assert len(pages) == math.ceil(len(rows) / 200) > 3
    assert [row["body"]["turn"] for row in rows if row["table"] == "events" and "turn" in row["body"]]


def test_an_export_of_one_session_has_nothing_of_others(tmp_path: Path, journal: Journal) -> None:
    fill(journal)
    rows = [row for page in export(tmp_path / "journal.db", "s1") for row in page.rows]
    assert {row.get("session") or row.get("name") for row in rows} == {"s1"}
    assert len(rows) == 1 + 40 + 40 + 120


@every_journal
def test_what_is_old_is_forgotten_and_no_seq_is_lost(journal: Journal) -> None:
    fill(journal)
    pruning = Pruning(before=31.0)
    asyncio.run(journal.prune(pruning))
    assert pruning.removed["turns"] == pruning.removed["messages"] == 3 * 30
    assert pruning.removed["events"] == 3 * 90
    for session in ("s0", "s1", "s2"):
        assert seqs(journal, session) == list(range(91, 121))
        assert journal.read.session_seq(session) == 120
    assert journal.check() == ()
    assert journal.read.turn_story("s0/30") is None
    assert journal.read.turn_story("s0/31") is not None
    Life(journal).say("m_new", "hello", session="s0")
    assert seqs(journal, "s0")[-1] == 122


@every_journal
def test_what_is_open_stays_however_old_it_is(journal: Journal) -> None:
    life = Life(journal, now=1.0)
    life.ready(0)
    life.say("m_1", "runs", session="open")
    life.say("m_2", "waits", session="open")
    fill(journal, 1, 5)
    journal.commit_now([accepted(1, "gone"), accepted(2, "gone")])
    journal.commit_now([MessageDropped(session="gone", at=3.0, seq=3, message="m_gone_1", by="test")])
    asyncio.run(journal.prune(Pruning(before=inf)))
    assert seqs(journal, "open")[0] == 1
    assert journal.load(Policy()).sessions["open"].turn is not None
    assert [message.id for message in journal.load(Policy()).sessions["open"].waiting] == ["m_2"]
    assert journal.read.message_story("m_gone_1") is None
    assert seqs(journal, "gone") == [2, 3]
    assert seqs(journal, "s0") == []
    assert journal.check() == ()


def test_the_oldest_go_first_until_it_is_small_enough(journal: Journal) -> None:
    fill(journal, 1, 400)
    before = FileStore(journal._reading).used_bytes()
    pruning = Pruning(before=0.0, keep_bytes=before // 2)
    asyncio.run(journal.prune(pruning))
    assert FileStore(journal._reading).used_bytes() <= before // 2
    left = seqs(journal, "s0")
    assert 100 < len(left) < 1000
    assert left == list(range(left[0], 1201))


@every_journal
def test_commits_pass_between_the_slices_of_a_pruning(journal: Journal) -> None:
    fill(journal, 1, 300)

    async def both() -> int:
        pruning = asyncio.ensure_future(journal.prune(Pruning(before=inf)))
        committed = 0
        while not pruning.done():
            committed += 1
            await journal.commit([accepted(committed, "busy")])
        await pruning
        return committed

    assert asyncio.run(both()) > 5


def test_a_pruning_that_fails_removes_nothing_and_costs_no_later_commit(
    journal: Journal, tmp_path: Path
) -> None:
    fill(journal, 1, 3)
    rows = maintenance.stats(tmp_path / "journal.db")["rows"]
    with closing(sqlite3.connect(tmp_path / "journal.db")) as other:
        # The turn itself is deleted after all that belongs to it.
        other.execute("CREATE TRIGGER kept BEFORE DELETE ON turns BEGIN SELECT RAISE(ABORT, 'kept'); END")
    for turn in (4, 5):
        with pytest.raises(JournalError, match="kept"):
            asyncio.run(journal.prune(Pruning(before=inf)))
        assert maintenance.stats(tmp_path / "journal.db")["rows"] == rows
        journal.commit_now(ended("s0", turn))
        rows = maintenance.stats(tmp_path / "journal.db")["rows"]
        assert rows["turns"] == turn


def test_rows_that_contradict_each_other_are_found(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    fill(journal, 1, 3)
    journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("UPDATE sessions SET seq = seq + 1")
        connection.execute("DELETE FROM turns WHERE id = 's0/2'")
    connection.close()
    assert maintenance.check(tmp_path / "journal.db") == (
        "1 sessions do not agree with their events",
        "1 messages were taken by turns that are not there",
    )


@every_journal
def test_a_turn_that_ended_lately_stays_however_early_it_began(journal: Journal) -> None:
    """The first two ended before the limit, one after it, and one at it."""
    for number, ended_at in enumerate((5.0, 5.0, 20.0, 10.0), start=1):
        *begun, failed = ended("s", number)
        journal.commit_now([*begun, replace(failed, at=ended_at)])
    pruning = Pruning(before=10.0)
    asyncio.run(journal.prune(pruning))
    assert pruning.removed["turns"] == 2
    assert [journal.read.turn_story(f"s/{number}") is not None for number in range(1, 5)] == [
        False, False, True, True
    ]  # fmt: skip
    assert seqs(journal, "s") == list(range(7, 13))


@every_journal
def test_the_first_message_of_all_is_forgotten_too(journal: Journal) -> None:
    journal.commit_now([accepted(1, "gone")])
    journal.commit_now([MessageDropped(session="gone", at=1.0, seq=2, message="m_gone_1", by="test")])
    journal.commit_now([accepted(2, "young", seq=1)])
    journal.commit_now([MessageDropped(session="young", at=20.0, seq=2, message="m_young_2", by="test")])
    pruning = Pruning(before=10.0)
    asyncio.run(journal.prune(pruning))
    assert pruning.removed["messages"] == 1
    assert journal.read.message_story("m_gone_1") is None
    assert journal.read.message_story("m_young_2") is not None


@every_journal
def test_a_long_feed_is_forgotten_to_its_end(journal: Journal) -> None:
    journal.commit_now([record for number in range(1, 301) for record in ended("s0", number)])
    asyncio.run(journal.prune(Pruning(before=inf)))
    assert seqs(journal, "s0") == []
    assert journal.read.is_forgotten("s0")


def test_a_backup_is_of_one_moment_private_and_one_file_without_free_pages(
    tmp_path: Path, journal: Journal
) -> None:
    fill(journal, 1, 60)
    asyncio.run(journal.prune(Pruning(before=50.0)))

    def write_on() -> bool:
        journal.commit_now([accepted(1, f"late{journal.transactions}")])
        return False

    before = os.umask(0o022)
    try:
        maintenance.backup(tmp_path / "journal.db", tmp_path / "copy.db", write_on)
    finally:
        os.umask(before)
    copied = maintenance.stats(tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert (copied["rows"]["sessions"], copied["free_bytes"]) == (1, 0)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    with pytest.raises(JournalError, match="cannot be written"):
        maintenance.backup(tmp_path / "journal.db", tmp_path / "absent" / "copy.db", lambda: False)


@pytest.mark.parametrize("after", ["life:", "absent:", 'sessions:["s0",1]'])
def test_a_place_that_no_page_has_given_is_refused(journal: Journal, tmp_path: Path, after: str) -> None:
    fill(journal, 1, 1)
    with pytest.raises(BadPlace):
        maintenance.export_page(tmp_path / "journal.db", None, after)


def test_a_slice_of_a_pruning_is_short(journal: Journal) -> None:
    """A commit waits for it."""
    assert (prune._TURNS_A_SLICE, prune._EVENTS_A_SLICE, prune._LOOKED_AT_A_SLICE) == (20, 500, 500)
    fill(journal, 1, 30)
    pruning = Pruning(before=inf)
    pruning.slice(FileStore(journal._writing))
    assert (pruning.removed["turns"], pruning.removed["messages"], pruning.removed["events"]) == (20, 20, 0)
    pruning.slice(FileStore(journal._writing))
    assert pruning.removed["events"] == 60


def test_turns_that_arrive_during_a_pruning_are_left_to_the_next(journal: Journal) -> None:
    fill(journal, 1, 25)
    pruning, store = Pruning(before=inf), FileStore(journal._writing)
    pruning.slice(store)
    journal.commit_now(ended("s0", 26))
    while pruning.slice(store):
        pass
    assert pruning.removed["turns"] == 25
    assert seqs(journal, "s0") == [76, 77, 78]


def test_a_journal_that_is_as_large_as_it_may_be_loses_nothing_young(journal: Journal) -> None:
    fill(journal, 1, 3)
    pruning = Pruning(before=0.0, keep_bytes=FileStore(journal._writing).used_bytes())
    asyncio.run(journal.prune(pruning))
    assert not +pruning.removed


@every_journal
def test_cursors_go_with_the_last_event_of_their_session(journal: Journal) -> None:
    fill(journal, 1, 2)
    journal.commit_now([CursorMoved(session="s0", at=2.0, seq=0, cursor="phone", before=0, seen=3)])
    asyncio.run(journal.prune(Pruning(before=2.0)))
    assert journal.read.cursors("s0") == {"phone": 3}
    asyncio.run(journal.prune(Pruning(before=inf)))
    assert journal.read.cursors("s0") == {}


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM events WHERE seq = 2", "1 sessions have a gap in their events"),
        ("UPDATE turns SET state = 'running' WHERE number = 2", "1 turns run without an attempt"),
    ],
)
def test_a_gap_and_a_turn_that_nobody_runs_are_found(journal: Journal, change: str, finding: str) -> None:
    fill(journal, 1, 3)
    assert journal.check() == ()
    journal._writing.execute(change)
    assert journal.check() == (finding,)


def test_a_gap_that_a_repair_has_told_and_a_turn_that_is_being_stopped_are_no_findings(
    journal: Journal,
) -> None:
    journal.commit_now(DYING)
    fill(journal, 1, 3)
    journal._writing.execute("DELETE FROM events WHERE session = 's0' AND seq = 2")
    told = "UPDATE events SET type = 'journal.repaired' WHERE session = 's0' AND seq = 9"
    journal._writing.execute(told)
    assert journal.check() == ()
