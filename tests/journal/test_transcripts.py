"""What the journal keeps of spoken messages: one transcript, fenced, and told again after a repair."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from supervisor.core.policy import Policy
from supervisor.core.records import (
    MessageAccepted,
    MessageDropped,
    Record,
    TranscriptFailed,
    TranscriptReady,
    TurnOpened,
)
from supervisor.journal.errors import JournalFenced
from supervisor.journal.journal import Journal
from supervisor.journal.repair import repair
from tests.journal.conftest import open_in
from tests.journal.lives import accepted


def spoken(seq: int) -> MessageAccepted:
    said = {"message": f"m_{seq}", "key": f"key-{seq}", "kind": "voice", "text": "", "busy": "queue"}
    return MessageAccepted(session="s", at=float(seq), seq=seq, clip=f"clip{seq}", **said)


def ready(seq: int, message: str = "m_1") -> TranscriptReady:
    return TranscriptReady(session="s", at=float(seq), seq=seq, message=message, text="words")


def failed(seq: int, message: str = "m_1") -> TranscriptFailed:
    return TranscriptFailed(session="s", at=float(seq), seq=seq, message=message, reason="why", hint="what")


def opened(seq: int) -> TurnOpened:
    return TurnOpened(session="s", at=float(seq), seq=seq, turn="s/1", number=1, messages=("m_1",))


REFUSED: dict[str, tuple[tuple[Record, ...], Record]] = {
    "a second transcript": ((spoken(1), ready(2)), ready(3)),
    "a transcript after a failure": ((spoken(1), failed(2)), ready(3)),
    "a failure after the transcript": ((spoken(1), ready(2)), failed(3)),
    "a transcript of what was written": ((accepted(1),), ready(2, "m_s_1")),
    "a turn for a clip without words": ((spoken(1),), opened(2)),
    "a drop of what was not understood": (
        (spoken(1), failed(2)),
        MessageDropped(session="s", at=3.0, seq=3, message="m_1", by="b"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused(tmp_path: Path, what: str) -> None:
    before, record = REFUSED[what]
    journal = open_in(tmp_path)
    journal.commit_now(before)
    with pytest.raises(JournalFenced):
        journal.commit_now([record])
    journal.close()


def waiting(journal: Journal) -> list[tuple[str, str, bool]]:
    session = journal.load(Policy()).sessions["s"]
    return [(message.id, message.text, message.is_transcribing) for message in session.waiting]


def test_clips_and_words_are_loaded_again(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([spoken(1), spoken(2), ready(3), spoken(4), failed(5, "m_4")])
    journal.close()
    journal = open_in(tmp_path)
    assert waiting(journal) == [("m_1", "words", False), ("m_2", "", True)]
    assert journal.read.clip_of("m_4") == ("s", "failed", "clip4")
    assert journal.read.clips_known(["clip1", "clip4", "stray"]) == {"clip1", "clip4"}
    journal.close()


def test_a_repair_tells_words_again_and_gives_up_a_clip_whose_name_is_lost(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([spoken(1), spoken(2), ready(3)])
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection, connection:
        connection.execute("DELETE FROM messages")
    repair(tmp_path / "journal.db")
    journal = open_in(tmp_path)
    assert waiting(journal) == [("m_1", "words", False)]
    found = journal.read.clip_of("m_2")
    assert found is not None
    assert found[1] == "failed"
    journal.close()
