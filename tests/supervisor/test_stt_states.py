"""Clips between states of the STT service, played by the test, and what is told of their transcription."""

import os
from pathlib import Path

import pytest

from ipc.stt_messages import NotTranscribed, Transcribe, TranscriptProgress
from supervisor.config.settings import Settings
from supervisor.stt.shared_clips import SharedClips
from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_played_stt import Desk, Rows, play, share


def test_a_clip_is_not_sent_again_to_a_service_that_has_ended(tmp_path: Path) -> None:
    """Its word that the clip may be tried again was under way."""

    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1")
        desk.hearing.expect_end()
        desk.becomes("resting")
        desk.tell(NotTranscribed("m1", "the server is away", "wait", again=True))
        assert desk.orders == ["m1"]
        assert desk.failed == ["m1"]

    play(act)


def test_the_fault_of_a_service_is_over_when_it_is_ready(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("failed", "ready")
        assert desk.hearing.fault is None
        desk.speak("m1")
        assert (desk.orders, desk.failed) == (["m1"], [])

    play(act)


def test_a_clip_ends_at_once_while_the_service_cannot_work(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("failed")
        assert not desk.hearing.was_used
        desk.speak("m1")
        assert desk.hearing.was_used
        assert desk.failed == ["m1"]

    play(act)


@pytest.mark.parametrize(("seconds", "is_told"), [(30.0, False), (31.0, True)])
def test_the_progress_of_a_short_clip_is_not_told(tmp_path: Path, seconds: float, is_told: bool) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1")
        desk.tell(TranscriptProgress("m1", 5.0, seconds, "so far"))
        assert desk.notes == ([f"heard 5 of {seconds:.0f} s: so far"] if is_told else [])

    play(act)


def test_the_service_is_told_the_deadline_of_a_clip(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1")
        [order] = desk.sent
        assert isinstance(order, Transcribe)
        assert order.deadline_seconds == Settings().stt.deadline_seconds

    play(act)


# --- the files of clips that other hosts have taken


def test_a_file_that_was_left_half_written_is_no_part_of_a_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier process of the same id was killed while it wrote a longer one."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    (tmp_path / ".m1.7").write_bytes(b"a much longer sound")

    async def act() -> None:
        desk = Desk(tmp_path)
        desk.rows.stored["m1"] = b"sound"
        share(desk, "m1")

    play(act)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m1", b"sound")]


def test_a_clip_whose_file_cannot_be_made_leaves_none(tmp_path: Path) -> None:
    class InTheWay(Rows):
        def content(self, name: str) -> bytes | None:
            (tmp_path / name).mkdir()
            return b"sound"

    asking, done = HeldAsking(), list[str]()
    clips = SharedClips(tmp_path, lambda folder: None, InTheWay(), asking)
    clips.share("m1", lambda: done.append("m1"), lambda error: pytest.fail(error.fault))
    asking.answer()
    assert done == ["m1"]
    assert [path.name for path in tmp_path.iterdir()] == ["m1"]
