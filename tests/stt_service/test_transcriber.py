"""The service in the test process, with real decoders, and a server on loopback that transcribes."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import Beat, Message
from ipc.service_messages import ServiceState
from ipc.stt_messages import Forget, NotTranscribed, Transcribe, Transcribed, TranscriptProgress
from stt_service import transcriber
from stt_service.engines import Transcript
from stt_service.errors import CannotTranscribe
from stt_service.options import Options, Remote
from stt_service.transcriber import Service
from tests.stt_service.sounds import clip, file_of, samples_of, silence
from tests.stt_service.test_remote import Server, server
from tests.waiting import soon

CLIP = clip("young_man")


class Desk:
    """A service, the server that it asks, and what it has sent."""

    def __init__(self, far: Server, **options: Any) -> None:
        self.server = far
        self.sent: list[Message] = []
        remote = Remote(**far.remote)
        self.service = Service(Options(engines=("openai",), remote=remote, **options), self.sent.append)

    def hear(self, message: str, content: Path = CLIP, seconds: float = 60.0, **wish: Any) -> None:
        order = Transcribe(message, str(content), content.stat().st_size, seconds, **wish)
        self.service.receive(order)

    def answers(self) -> dict[str, Message]:
        found = [one for one in self.sent if isinstance(one, Transcribed | NotTranscribed)]
        assert len({one.message for one in found}) == len(found), "one answer for each clip"
        return {one.message: one for one in found}

    async def answer_of(self, message: str) -> Message:
        await soon(lambda: message in self.answers())
        return self.answers()[message]

    def states(self) -> list[tuple[str, str]]:
        return [(one.state, one.detail) for one in self.sent if isinstance(one, ServiceState)]

    async def beats(self, number: int) -> None:
        """Returns after so many further beats, which is as often as it looks whether it is idle."""
        count = self.sent.count(Beat())
        await soon(lambda: self.sent.count(Beat()) >= count + number)


Story = Callable[[Desk], Coroutine[Any, Any, None]]


def run(story: Story, **options: Any) -> None:
    async def act(far: Server) -> None:
        desk = Desk(far, **options)
        serving = asyncio.create_task(desk.service.run())
        try:
            await soon(lambda: desk.states()[-1:] and desk.states()[-1][0] == "ready")
            await story(desk)
        finally:
            far.answers.set()
            serving.cancel()
            await asyncio.wait([serving])

    with server(200, {"text": "from far away"}) as far:
        asyncio.run(act(far))


READY, RESTING = "whisper-1 at 127.0.0.1", "whisper-1 at 127.0.0.1, resting"


def test_it_rests_when_no_clip_came_for_a_while_and_never_during_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcriber, "_BEAT_SECONDS", 0.02)

    async def story(desk: Desk) -> None:
        assert desk.states()[0] == ("warming", "loading tiny.en")
        desk.server.answers.clear()
        told = len(desk.states())
        desk.hear("m_1")
        await soon(lambda: desk.server.requests)
        await desk.beats(20)
        assert ("ready", RESTING) not in desk.states()[told:]
        desk.server.answers.set()
        await soon(lambda: "m_1" in desk.answers())
        await soon(lambda: desk.states()[-1] == ("ready", RESTING))
        await desk.beats(20)
        told = len(desk.states())
        assert desk.states()[-2:] == [("ready", READY), ("ready", RESTING)], "it is told once"
        desk.hear("m_2")
        await soon(lambda: "m_2" in desk.answers())
        assert desk.states()[told] == ("ready", READY)
        await soon(lambda: desk.states()[told + 1 :] == [("ready", RESTING)])

    run(story, idle_seconds=0.05)


def test_a_clip_that_comes_and_goes_between_two_looks_keeps_it_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcriber, "_BEAT_SECONDS", 0.1)

    async def act() -> None:
        sent: list[Message] = []
        service = Service(Options(idle_seconds=600.0), sent.append)
        service._used_at -= 3600
        looking = asyncio.create_task(service._release_when_idle())
        await asyncio.sleep(0)
        service._used_at += 3600
        began = time.monotonic()
        await soon(lambda: time.monotonic() > began + 0.3)
        assert not sent
        service._used_at -= 3600
        looking.cancel()
        looking = asyncio.create_task(service._release_when_idle())
        await soon(lambda: sent)
        looking.cancel()

    asyncio.run(act())


def test_without_a_limit_it_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcriber, "_BEAT_SECONDS", 0.02)

    async def story(desk: Desk) -> None:
        await desk.beats(20)
        assert [detail for _, detail in desk.states()] == ["loading tiny.en", READY]

    run(story)


def test_a_clip_that_is_sent_twice_is_answered_once_and_a_forgotten_one_never() -> None:
    async def story(desk: Desk) -> None:
        desk.server.answers.clear()
        desk.hear("m_1")
        desk.hear("m_1")
        desk.hear("m_2")
        await soon(lambda: len(desk.server.requests) == 2)
        desk.service.receive(Forget("m_2"))
        desk.service.receive(Forget("m_unknown"))
        await soon(lambda: list(desk.service._clips) == ["m_1"])
        desk.server.answers.set()
        await soon(lambda: "m_1" in desk.answers())
        await soon(lambda: not desk.service._clips)
        desk.hear("m_2")
        await soon(lambda: "m_2" in desk.answers())
        assert list(desk.answers()) == ["m_1", "m_2"]

    run(story)


def test_more_clips_than_may_wait_are_refused_and_can_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcriber, "_WAITING_MAX", 1)

    async def story(desk: Desk) -> None:
        desk.server.answers.clear()
        desk.hear("m_1")
        desk.hear("m_2")
        refused = desk.answers()["m_2"]
        assert isinstance(refused, NotTranscribed)
        assert (refused.reason, refused.again) == ("1 clips are waiting already", True)
        desk.server.answers.set()
        await soon(lambda: "m_1" in desk.answers())

    run(story)


def test_a_deadline_and_a_clip_without_voice_end_by_name(tmp_path: Path) -> None:
    (tmp_path / "silence").write_bytes(file_of(silence(2), "wav"))

    async def story(desk: Desk) -> None:
        desk.hear("m_1", tmp_path / "silence")
        await soon(lambda: "m_1" in desk.answers())
        assert not desk.server.requests
        desk.server.answers.clear()
        desk.hear("m_2", seconds=0.5)
        await soon(lambda: "m_2" in desk.answers())
        reasons = [one.reason for one in desk.answers().values() if isinstance(one, NotTranscribed)]
        assert reasons == [
            "nothing was understood: no words were found in the clip",
            "transcribing took longer than 0.5 s",
        ]

    run(story)


def test_the_wishes_of_a_clip_come_before_the_options() -> None:
    async def story(desk: Desk) -> None:
        desk.hear("m_0")
        await soon(lambda: "m_0" in desk.answers())
        desk.hear("m_1", language="fr", prompt="Its own.", hotwords="Own")
        await soon(lambda: "m_1" in desk.answers())
        by_options, by_clip = (body for _, _, body in desk.server.requests)
        assert b"Hot Given." in by_options
        assert b"\r\nde\r\n" in by_options
        assert b"Own Its own." in by_clip
        assert b"\r\nfr\r\n" in by_clip
        answer = desk.answers()["m_1"]
        assert isinstance(answer, Transcribed)
        assert (answer.text, answer.language) == ("from far away", "fr")
        assert 2.0 < answer.seconds < 4.0
        shown = [one for one in desk.sent if isinstance(one, TranscriptProgress) and one.message == "m_1"]
        assert shown[0] == TranscriptProgress("m_1", 0.0, round(answer.seconds, 2), "")

    run(story, language="de", prompt="Given.", hotwords="Hot")


def test_a_clip_that_is_sent_twice_is_answered_once() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(2):
            desk.hear("m1")
        desk.hear("m2")
        await soon(lambda: len(desk.answers()) == 2)
        await soon(lambda: not desk.service._clips)
        assert set(desk.answers()) == {"m1", "m2"}

    run(story)


class Failing:
    """An engine that cannot transcribe anything."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name = name
        self._error = error
        self.released = 0

    async def transcribe(self, *_: object) -> Transcript:
        raise self._error

    def release(self) -> None:
        self.released += 1


def test_the_reason_is_that_of_the_first_engine_and_a_lack_of_memory_ends_no_other_clip() -> None:
    async def story(desk: Desk) -> None:
        engines, desk.service._engines = desk.service._engines, []
        desk.service._engines += [
            Failing(name, CannotTranscribe(f"of {name}", "")) for name in ("one", "two")
        ]
        desk.hear("m1")
        await soon(lambda: "m1" in desk.answers())
        desk.service._engines = [Failing("one", MemoryError())]
        desk.hear("m2")
        await soon(lambda: "m2" in desk.answers())
        desk.service._engines = engines
        desk.hear("m3")
        await soon(lambda: "m3" in desk.answers())
        failed, lacking, heard = desk.answers().values()
        assert isinstance(failed, NotTranscribed)
        assert isinstance(lacking, NotTranscribed)
        assert (failed.reason, lacking.reason) == ("of one", "the clip needs more memory than there is")
        assert isinstance(heard, Transcribed)

    run(story)


def test_sound_that_is_missing_is_told_with_the_words_and_with_their_lack(tmp_path: Path) -> None:
    for name, samples in (("voice", samples_of("young_man")), ("silence", silence(2))):
        content = file_of(samples, "wav")
        (tmp_path / name).write_bytes(content[: len(content) * 7 // 8])
    missing = "the end of the file is missing"

    async def story(desk: Desk) -> None:
        for message, name, text in (("m1", "voice", "words"), ("m2", "silence", ""), ("m3", "voice", "[M]")):
            desk.server.will_answer(200, {"text": text})
            desk.hear(message, tmp_path / name)
            await desk.answer_of(message)
        heard, *others = desk.answers().values()
        assert isinstance(heard, Transcribed)
        assert heard.cautions == (missing,)
        reason = f"nothing was understood: no words were found in the clip, and {missing}"
        assert [one.reason for one in others if isinstance(one, NotTranscribed)] == [reason] * 2

    run(story)


def test_no_more_clips_are_opened_than_fit_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(transcriber, "_OPEN_MAX", 1)
    monkeypatch.setattr(transcriber, "_BEAT_SECONDS", 0.02)

    async def story(desk: Desk) -> None:
        desk.server.answers.clear()
        desk.hear("m1")
        await soon(lambda: desk.server.requests)
        desk.service.receive(Transcribe("m2", str(tmp_path / "missing"), 1, 60.0))
        await desk.beats(5)
        desk.server.answers.set()
        await soon(lambda: len(desk.answers()) == 2)
        assert list(desk.answers()) == ["m1", "m2"]

    run(story)


def test_the_time_without_a_clip_counts_from_the_end_of_the_last_one() -> None:
    async def story(desk: Desk) -> None:
        before = desk.service._used_at
        desk.hear("m1")
        await soon(lambda: "m1" in desk.answers())
        assert desk.service._used_at > before

    run(story)


def test_a_service_that_rests_has_released_the_weights_of_its_engines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcriber, "_BEAT_SECONDS", 0.01)

    async def act() -> None:
        sent: list[Message] = []
        service = Service(Options(idle_seconds=600.0), sent.append)
        service._used_at -= 3600
        engine = Failing("one", CannotTranscribe("", ""))
        service._engines.append(engine)
        looking = asyncio.create_task(service._release_when_idle())
        await soon(lambda: sent)
        looking.cancel()
        assert engine.released == 1

    asyncio.run(act())
