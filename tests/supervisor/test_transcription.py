"""Clips and the service that hears them, with real processes: each ends once, whatever becomes of those."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermesctl import clip_upload as hand
from ipc.stt_messages import TranscriptProgress
from stt_service.options import Limits, Options
from supervisor.config.live import Live
from supervisor.config.settings import Settings, Stt
from supervisor.core.effects import ForgetClip, Transcribe
from supervisor.core.events import Event, NotTranscribed, Transcribed
from supervisor.services import ServiceChanged, Services, ServiceSpec
from supervisor.stt import clip_store, stt_spec, transcription
from supervisor.stt.transcription import Transcription
from tests.no_containment import uncontained
from tests.services.watching import PATIENCE_SECONDS, QUICK
from tests.supervisor.pretend_stt import SLOW_SECONDS
from tests.waiting import soon


class Heard:
    """A Transcription on a real service, and all that has come of it."""

    def __init__(self, folder: Path, stt: Stt, fails: str) -> None:
        self.folder = folder
        self.outcomes: list[Event] = []
        self.notes: list[str] = []
        self.states: list[str] = []
        self._news = asyncio.Event()
        self.live = Live(Settings(stt=stt))
        self.hearing = Transcription(live=self.live, clips=folder, post=self._posted, progress=self._progress)
        options = {"mended": str(folder / "mended"), "fails": fails}
        self.spec = ServiceSpec(
            "stt", "tests.supervisor.pretend_stt", options, PATIENCE_SECONDS, restart=QUICK
        )
        self.services: Services

    async def open(self) -> None:
        self.services = Services(
            [self.spec],
            endpoint=str(self.folder / "services.sock"),
            logs=self.folder / "logs",
            report=self._changed,
            clip_told=self.hearing.clip_told,
            contain=uncontained(),
        )
        self.hearing.open(self.services)
        self.services.open()

    def speak(self, message: str, what: str) -> None:
        (self.folder / message).write_text(what)
        self.hearing.transcribe(Transcribe("s", message, message))

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def outcome(self, message: str) -> Transcribed | NotTranscribed:
        await self.until(lambda: self._of(message))
        (found,) = self._of(message)
        return found

    def _of(self, message: str) -> list[Transcribed | NotTranscribed]:
        return [
            each
            for each in self.outcomes
            if isinstance(each, Transcribed | NotTranscribed) and each.message == message
        ]

    def _posted(self, event: Event) -> None:
        self.outcomes.append(event)
        self._news.set()

    def _progress(self, session: str, message: str, text: str) -> None:
        self.notes.append(f"{session} {message} {text}")

    def _changed(self, changed: ServiceChanged) -> None:
        self.states.append(changed.state)
        self.hearing.service_changed(changed)
        self._news.set()


@asynccontextmanager
async def listening(folder: Path, fails: str = "", **stt: Any) -> AsyncIterator[Heard]:
    heard = Heard(folder, Stt(**stt), fails)
    await heard.open()
    try:
        yield heard
    finally:
        await heard.services.close(10.0)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("nothing", "it is a picture"),
        ("blank", "nothing was understood"),
        ("again", "the server is away"),
        ("crash", "the STT service ended 2 times while it was at it"),
    ],
)
def test_a_clip_without_words_ends_with_its_reason_and_the_next_is_heard(
    tmp_path: Path, what: str, reason: str
) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", what)
            heard.speak("m2", "words")
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert ended.reason == reason
            assert ended.hint
            assert await heard.outcome("m2") == Transcribed("s", "m2", "the words")
            assert (tmp_path / "m1").exists()

    run(story())


@pytest.mark.parametrize("what", ["crash-once", "again-once"])
def test_a_clip_is_tried_once_more(tmp_path: Path, what: str) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", what)
            assert await heard.outcome("m1") == Transcribed("s", "m1", "the words")

    run(story())


def test_clips_that_end_the_service_again_and_again_cost_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            for number in range(3):
                heard.speak(f"m{number}", "crash")
            heard.speak("m9", "words")
            for number in range(3):
                assert isinstance(await heard.outcome(f"m{number}"), NotTranscribed)
            assert "failed" in heard.states
            assert isinstance(await heard.outcome("m9"), Transcribed)
            assert heard.hearing.fault is None

    run(story())


@pytest.mark.parametrize("what", ["hang", "mute"])
def test_c4_a_deadline_ends_the_process_and_the_next_clip_is_heard(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "_GRACE_SECONDS", 0.1)

    async def story() -> None:
        async with listening(tmp_path, deadline_seconds=0.3) as heard:
            await heard.until(lambda: "ready" in heard.states)
            (first,) = heard.services.rows()
            heard.speak("m1", what)
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert ended.reason == "no transcript within 0.3 s"
            assert "hermesctl retry m1" in ended.hint
            # Sent to a process that is dying: that weighs on no clip.
            heard.speak("m2", "crash-once")
            assert isinstance(await heard.outcome("m2"), Transcribed)
            (second,) = heard.services.rows()
            assert second["pid"] != first["pid"]
            assert (tmp_path / "m1").exists()

    run(story())


def test_waiting_for_others_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they take far longer than the deadline of each, which is far longer than any of them takes."""
    monkeypatch.setattr(transcription, "_GRACE_SECONDS", 0.0)

    async def story() -> None:
        async with listening(tmp_path, deadline_seconds=3 * SLOW_SECONDS) as heard:
            await heard.until(lambda: "ready" in heard.states)
            for number in range(8):
                heard.speak(f"m{number}", "slow")
            for number in range(8):
                assert isinstance(await heard.outcome(f"m{number}"), Transcribed)
            assert heard.states.count("ready") == 1

    run(story())


def test_a_service_that_cannot_work_ends_clips_with_its_remedy_until_it_is_mended(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path, fails="yes") as heard:
            heard.speak("m1", "words")
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert ended.reason.startswith("it has no weights")
            assert ended.hint == "give it some"
            heard.speak("m2", "words")
            assert isinstance(await heard.outcome("m2"), NotTranscribed)
            assert heard.hearing.fault is not None
            heard.live.settings = Settings(stt=Stt(engine="off"))
            heard.hearing.service_changed(changed("stopped"))
            assert heard.hearing.fault is None, "what is switched off does not fail"
            heard.live.settings = Settings()
            (tmp_path / "mended").touch()
            await heard.until(lambda: heard.states[-1] == "ready")
            heard.speak("m3", "words")
            assert isinstance(await heard.outcome("m3"), Transcribed)
            assert heard.hearing.fault is None

    run(story())


def test_a_forgotten_clip_has_no_outcome(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "words")
            heard.hearing.forget(ForgetClip("m1"))
            heard.hearing.forget(ForgetClip("unknown"))
            await heard.until(lambda: "ready" in heard.states)
            heard.speak("m2", "words")
            await heard.outcome("m2")
            assert [each for each in heard.outcomes if each == Transcribed("s", "m1", "the words")] == []

    run(story())


def test_a_service_is_told_that_a_clip_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "mute")
            await soon((tmp_path / "m1tried").exists)
            heard.hearing.forget(ForgetClip("m1"))
            await soon((tmp_path / "m1forgotten").exists)

    run(story())


def changed(state: str) -> ServiceChanged:
    return ServiceChanged("stt", state, "", "", "")


def test_only_the_end_that_was_expected_counts_against_no_clip(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "mute")
            await soon((tmp_path / "m1tried").exists)
            heard.hearing.expect_end()
            for _ in range(3):
                assert heard.outcomes == []
                heard.hearing.service_changed(changed("resting"))
                heard.hearing.service_changed(changed("ready"))
            [ended] = heard.outcomes
            assert isinstance(ended, NotTranscribed)
            assert ended.reason == "the STT service ended 2 times while it was at it"

    run(story())


def test_a_clip_that_could_not_be_sent_does_not_pay_for_the_end_of_the_service(tmp_path: Path) -> None:
    """The service is ready, and its connection is gone already."""

    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "words")
            for _ in range(3):
                heard.hearing.service_changed(changed("ready"))
                heard.hearing.service_changed(changed("resting"))
            assert heard.outcomes == []
            assert await heard.outcome("m1") == Transcribed("s", "m1", "the words")

    run(story())


def test_progress_of_long_clips_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "long")
            await heard.outcome("m1")
            assert heard.notes == ["s m1 heard 30 of 60 s: the first half"]

    run(story())


def test_of_a_long_transcript_only_the_end_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "mute")
            for length in (3000, 3001):
                heard.hearing.clip_told("stt", TranscriptProgress("m1", 30.0, 60.0, "x" * length))
            told = f"s m1 heard 30 of 60 s: {'x' * 3000}"
            assert heard.notes == [told, told.replace(": ", ": …")]

    run(story())


def test_a_clip_whose_file_is_gone_ends_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.hearing.transcribe(Transcribe("s", "m1", "nowhere"))
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert "cannot be read" in ended.reason

    run(story())


def test_voice_that_is_switched_off_says_how_to_switch_it_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path, engine="off") as heard:
            heard.speak("m1", "words")
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert "[stt] engine" in ended.hint

    run(story())


def test_the_service_is_told_what_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_STT_KEY", "a-secret-of-mine")
    remote = Stt(engine="openai", fallback="faster-whisper", base_url="http://127.0.0.1:1/v1")
    keyed = Stt(**{**vars(remote), "api_key_env": "TEST_STT_KEY", "language": "en", "idle_seconds": 5.0})
    for stt, hint in ((Stt(), "hermesctl models pull"), (remote, ""), (keyed, "")):
        spec = stt_spec.stt_service(Settings(stt=stt), tmp_path)
        assert spec is not None
        # With a server to fall back on, missing weights are no reason to wait.
        weights = [needed.hint for needed in spec.needed if needed.files]
        assert [each.startswith(hint) for each in weights] == [True] * bool(hint)
        options = msgspec.convert(spec.options, Options, strict=True)
        assert set(spec.options) <= set(Options.__struct_fields__)
        assert options.models == str(tmp_path)
        assert "a-secret" not in repr(spec)
    assert options.engines == ("openai", "faster-whisper")
    assert options.remote is not None
    assert (options.remote.model, options.remote.api_key) == ("whisper-1", "a-secret-of-mine")
    assert (options.language, options.idle_seconds) == ("en", 5.0)
    assert stt_spec.stt_service(Settings(stt=Stt(engine="off")), tmp_path) is None


def test_everybody_has_the_same_limit() -> None:
    assert Limits().bytes_max == clip_store.CLIP_BYTES_MAX == hand.BYTES_MAX


def test_a_clip_does_not_pay_when_the_service_is_changed_under_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "mute")
            for what in ("mute", "mute", "words"):
                await soon((tmp_path / "m1tried").exists)
                (tmp_path / "m1tried").unlink()
                (tmp_path / "m1").write_text(what)
                heard.hearing.expect_end()
                heard.services.change("stt", heard.spec)
            assert await heard.outcome("m1") == Transcribed("s", "m1", "the words")

    run(story())


def test_what_waits_for_its_words_ends_when_voice_is_switched_off(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            heard.speak("m1", "mute")
            await soon((tmp_path / "m1tried").exists)
            heard.live.settings = Settings(stt=Stt(engine="off"))
            heard.hearing.expect_end()
            heard.services.change("stt", None)
            ended = await heard.outcome("m1")
            assert isinstance(ended, NotTranscribed)
            assert ended.reason == "voice is switched off"

    run(story())
