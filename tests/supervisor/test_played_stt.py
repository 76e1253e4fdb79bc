"""Clips, with the STT service played by the test: which of them pays for its end, and those elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from ipc.codec import Decoder
from ipc.errors import PlaceError
from ipc.messages import Answer, Refused, Transcript
from ipc.stt_messages import (
    Forget,
    FromStt,
    NotTranscribed,
    ToStt,
    Transcribe,
    Transcribed,
    TranscriptProgress,
)
from ipc.zmtp import Sent
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core import effects, events
from supervisor.journal.errors import JournalUnreachable
from supervisor.services import ServiceChanged, Services
from supervisor.stt import transcription
from supervisor.stt.clip_store import CLIP_BYTES_MAX
from supervisor.stt.shared_clips import SharedClips
from supervisor.stt.transcription import Transcription
from tests.supervisor.held_asking import HeldAsking
from tests.waiting import soon

AWAY = JournalUnreachable("the server does not answer", "look at it")


class Rows:
    """The clips that the journal has."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    def store(self, name: str, content: bytes) -> None:
        self.stored[name] = content

    def content(self, name: str) -> bytes | None:
        return self.stored.get(name)

    def remove(self, names: Collection[str]) -> None:
        raise AssertionError(names)

    def prune(self, keep_seconds: float, stray_seconds: float) -> None:
        raise AssertionError


class Desk:
    """A Transcription; what the service was sent, and what has come of it."""

    def __init__(self, folder: Path, is_shared: bool = False) -> None:
        self.folder = folder
        self.sent: list[ToStt] = []
        self.ended: list[str] = []
        self.notes: list[str] = []
        self.outcomes: list[events.Event] = []
        self.rows, self.asking = Rows(), HeldAsking()
        self.fault: PlaceError | None = None
        self.shared = SharedClips(folder, self._check, self.rows, self.asking)
        self.hearing = Transcription(
            live=Live(Settings()),
            clips=folder,
            post=self.outcomes.append,
            progress=lambda session, message, text: self.notes.append(text),
            shared=self.shared if is_shared else None,
        )
        self.hearing.open(cast("Services", self))
        self._decoder: Decoder[ToStt] = Decoder(ToStt)

    def _check(self, folder: Path) -> None:
        if self.fault is not None:
            raise self.fault

    def send(self, name: str, frame: bytes) -> Sent:
        self.sent.append(self._decoder.decode(frame))
        return Sent.SENT

    def end(self, name: str, detail: str, hint: str) -> None:
        self.ended.append(detail)

    def speak(self, *messages: str) -> None:
        for message in messages:
            (self.folder / message).write_bytes(b"sound")
            self.hearing.transcribe(effects.Transcribe("s", message, message))

    def apart(self, key: str) -> list[Answer]:
        (self.folder / f"clip{key}").write_bytes(b"sound")
        answers: list[Answer] = []
        self.hearing.transcribe_apart(f"clip{key}", key, answers.append)
        return answers

    def becomes(self, *states: str) -> None:
        for state in states:
            self.hearing.service_changed(ServiceChanged("stt", state, "", "", ""))

    def tell(self, message: FromStt) -> None:
        assert self.hearing.clip_told("stt", message)

    def begins(self, message: str) -> None:
        self.tell(TranscriptProgress(message, 0.0, 60.0))

    @property
    def orders(self) -> list[str]:
        return [each.message for each in self.sent if isinstance(each, Transcribe)]

    @property
    def failed(self) -> list[str]:
        return [each.message for each in self.outcomes if isinstance(each, events.NotTranscribed)]


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await act()

    asyncio.run(run())


def test_only_the_clip_that_is_being_transcribed_pays_for_the_end_of_the_service(tmp_path: Path) -> None:
    """Each life begins with another clip; the first has ended one process and is not begun again."""

    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1", "m2", "m3")
        for message in ("m1", "m2", "m3"):
            desk.begins(message)
            desk.becomes("resting", "ready")
            assert not desk.failed
        desk.begins("m2")
        desk.becomes("resting")
        assert desk.failed == ["m2"]

    play(act)


def test_a_clip_that_is_tried_again_does_not_pay_while_another_is_transcribed(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1", "m2")
        desk.begins("m1")
        desk.tell(NotTranscribed("m1", "the server is away", "wait", again=True))
        assert desk.orders == ["m1", "m2", "m1"]
        desk.begins("m2")
        desk.becomes("resting", "ready")
        assert not desk.failed
        desk.tell(Transcribed("m1", "words", "en", 1.0))
        assert desk.outcomes == [events.Transcribed("s", "m1", "words")]

    play(act)


def test_a_transcript_that_comes_twice_counts_once_and_its_time_is_over(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1")
        timer = desk.hearing._clips["m1"].deadline
        assert timer is not None
        for _ in range(2):
            desk.tell(Transcribed("m1", "words", "en", 1.0))
        assert desk.outcomes == [events.Transcribed("s", "m1", "words")]
        assert timer.cancelled()

    play(act)


def test_the_time_of_a_clip_begins_again_with_its_transcription_and_stands_still_without_a_service(
    tmp_path: Path,
) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        desk.speak("m1")
        clip = desk.hearing._clips["m1"]
        timers = [clip.deadline]
        desk.begins("m1")
        timers.append(clip.deadline)
        assert timers[0] is not timers[1]
        desk.becomes("resting")
        assert [timer is not None and timer.cancelled() for timer in timers] == [True, True]
        desk.becomes("ready")
        assert clip.deadline is not None
        assert not clip.deadline.cancelled()

    play(act)


def test_clips_of_messages_take_no_place_of_those_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "_APART_MAX", 2)

    async def act() -> None:
        desk = Desk(tmp_path)
        desk.speak("m1", "m2")
        first, second, third = (desk.apart(key) for key in ("a", "b", "c"))
        assert (first, second) == ([], [])
        [refused] = third
        assert isinstance(refused, Refused)
        assert refused.code == "full"
        desk.becomes("ready")
        desk.tell(Transcribed("apart a", "words", "en", 1.0))
        assert first == [Transcript("words", "en", 1.0)]
        assert desk.apart("c") == [], "there is room again"

    play(act)


def test_a_transcript_is_given_though_its_clip_was_removed(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("ready")
        answers = desk.apart("a")
        (tmp_path / "clipa").unlink()
        desk.tell(Transcribed("apart a", "words", "en", 1.0))
        assert answers == [Transcript("words", "en", 1.0)]

    play(act)


def test_an_end_that_is_expected_of_a_service_that_does_not_run_excuses_none_later(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.hearing.expect_end()
        desk.speak("m1")
        for _ in range(2):
            desk.becomes("ready")
            desk.begins("m1")
            desk.becomes("resting")
        assert desk.failed == ["m1"]

    play(act)


def test_a_fault_is_over_with_the_settings_that_had_it(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.becomes("failed")
        assert desk.hearing.fault is not None
        desk.hearing.expect_end()
        assert desk.hearing.fault is None
        desk.speak("m1")
        assert not desk.failed, "it waits for the new service"

    play(act)


# --- clips of other hosts -------------------------------------------------------------------------------


def test_a_clip_of_another_host_is_read_again_until_the_journal_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "_FETCH_AGAIN_SECONDS", 0.001)

    async def act() -> None:
        desk = Desk(tmp_path, is_shared=True)
        desk.becomes("ready")
        desk.rows.stored["m1"] = b"sound"
        desk.hearing.transcribe(effects.Transcribe("s", "m1", "m1"))
        for _ in range(2):
            await soon(lambda: desk.asking.is_asked)
            desk.asking.fail(AWAY)
        await soon(lambda: desk.asking.is_asked)
        assert not desk.orders
        desk.asking.answer()
        assert desk.orders == ["m1"]
        assert (tmp_path / "m1").read_bytes() == b"sound"

    play(act)


@pytest.mark.parametrize("is_away", [False, True], ids=["read", "away"])
def test_a_clip_that_is_forgotten_while_it_is_read_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    monkeypatch.setattr(transcription, "_FETCH_AGAIN_SECONDS", 0.0)

    async def act() -> None:
        desk = Desk(tmp_path, is_shared=True)
        desk.becomes("ready")
        desk.rows.stored["m1"] = b"sound"
        desk.hearing.transcribe(effects.Transcribe("s", "m1", "m1"))
        desk.hearing.forget(effects.ForgetClip("m1"))
        if is_away:
            desk.asking.fail(AWAY)
        else:
            desk.asking.answer()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not desk.asking.is_asked
        assert (desk.sent, desk.outcomes, desk.hearing._clips) == ([], [], {})

    play(act)


def test_a_clip_that_waits_for_the_service_is_forgotten_without_a_word_to_it(tmp_path: Path) -> None:
    async def act() -> None:
        desk = Desk(tmp_path)
        desk.speak("m1", "m2")
        desk.hearing.forget(effects.ForgetClip("m1"))
        desk.becomes("ready")
        assert desk.orders == ["m2"]
        desk.hearing.forget(effects.ForgetClip("m2"))
        assert desk.sent[1:] == [Forget("m2")]

    play(act)


def share(desk: Desk, *names: str) -> list[str]:
    """Share these clips; returns those that are done, in their order."""
    done: list[str] = []
    for name in names:
        desk.shared.share(name, partial(done.append, name), lambda error: pytest.fail(error.fault))
        desk.asking.answer()
    return done


def test_only_a_clip_that_can_be_accepted_becomes_a_row(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    (tmp_path / "secret").write_bytes(b"of the host")
    (clips / "good").write_bytes(b"sound")
    (clips / "empty").touch()
    (clips / "link").symlink_to(tmp_path / "secret")
    with (clips / "huge").open("wb") as huge:
        huge.truncate(CLIP_BYTES_MAX + 1)
    names = ("good", "empty", "link", "huge", "../secret", "absent")

    async def act() -> None:
        desk = Desk(clips, is_shared=True)
        assert share(desk, *names) == [*names], "the others are refused later"
        assert desk.rows.stored == {"good": b"sound"}

    play(act)


def test_a_row_becomes_a_file_in_its_own_folder_only(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()

    async def act() -> None:
        desk = Desk(clips, is_shared=True)
        desk.rows.stored = {"../outside": b"x", "clip": b"sound"}
        for fault in (PlaceError("the folder was replaced", "put it back"), None):
            desk.fault = fault
            share(desk, *desk.rows.stored)
            assert [path.name for path in clips.iterdir()] == ([] if fault else ["clip"]), "no part is left"

    play(act)
    assert not (tmp_path / "outside").exists()
    assert (clips / "clip").stat().st_mode & 0o777 == 0o600
