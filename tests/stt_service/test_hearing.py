"""Recorded speech through the real service: the right words, the same each time, in order of need."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ipc.stt_messages import NotTranscribed, Transcribed, TranscriptProgress
from tests.stt_service.conftest import Listen
from tests.stt_service.hearer import Hearer, hearing
from tests.stt_service.long_clips import two_windows
from tests.stt_service.sounds import KINDS, SAID, clip, file_of, samples_of
from tests.stt_service.wording import errors, words

# The model's published rate on read speech is about half of this.
_ERROR_RATE_MAX = 0.12


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def heard(hearer: Hearer, content: Any, **wish: Any) -> Transcribed:
    answer = await hearer.hear(content, **wish)
    assert isinstance(answer, Transcribed), answer
    return answer


def test_recorded_speech_is_understood_and_twice_the_same(
    capsys: pytest.CaptureFixture[str], listen: Listen
) -> None:
    async def story(hearer: Hearer) -> None:
        answers = {name: await heard(hearer, clip(name)) for name in SAID}
        wrong = {name: errors(SAID[name], answer.text) for name, answer in answers.items()}
        said = sum(len(words(text)) for text in SAID.values())
        with capsys.disabled():
            print(f"\nword error rate {sum(wrong.values()) / said:.1%} of {said} words: {wrong}")
        assert sum(wrong.values()) <= _ERROR_RATE_MAX * said
        for name, answer in answers.items():
            again = await heard(hearer, clip(name))
            assert (again.text, again.language) == (answer.text, "en")
            assert again.cautions == ()

    listen(story)


def test_every_container_people_send_gives_the_words(listen: Listen) -> None:
    async def story(hearer: Hearer) -> None:
        speech = samples_of("more_amiable")
        for kind in KINDS:
            answer = await heard(hearer, file_of(speech, kind))
            assert errors(SAID["more_amiable"], answer.text) <= 1, (kind, answer)
            assert abs(answer.seconds - 6.05) < 0.3, kind
        stereo = await heard(hearer, file_of(speech, "flac", "stereo"))
        assert errors(SAID["more_amiable"], stereo.text) <= 1

    listen(story)


def test_a_long_clip_tells_its_progress_and_a_command_overtakes_it(listen: Listen) -> None:
    async def story(hearer: Hearer) -> None:
        long = hearer.send(two_windows().content)
        await hearer.watched.until(lambda: bool(hearer.progress(long)))
        short = hearer.send(clip("young_man"))
        assert isinstance(await hearer.answer(short), Transcribed)
        answer = await hearer.answer(long)
        assert isinstance(answer, Transcribed)
        order = [one.message for one in hearer.said() if not isinstance(one, TranscriptProgress)]
        assert order[-2:] == [short, long]
        steps = hearer.progress(long)
        assert steps[0] == TranscriptProgress(long, 0.0, round(answer.seconds, 2))
        assert [one.seconds_done for one in steps] == sorted(one.seconds_done for one in steps)
        assert len(steps) >= 4
        assert all(answer.text.startswith(one.text) for one in steps)
        said = two_windows().said
        assert errors(said, answer.text) <= _ERROR_RATE_MAX * 1.5 * len(words(said))

    listen(story)


def test_a_forgotten_clip_is_not_answered_and_leaves_its_lane(listen: Listen) -> None:
    async def story(hearer: Hearer) -> None:
        long = hearer.send(two_windows().content)
        await hearer.watched.until(lambda: bool(hearer.progress(long)))
        # Sent when the lane is taken: of two that are decoded at once either may be the first in it.
        waits = hearer.send(two_windows().content)
        hearer.forget(waits)
        hearer.forget(long)
        hearer.forget("m_unknown")
        # Long as well, so it needs the lane that the forgotten one had.
        last = await heard(hearer, two_windows().content)
        answered = {one.message for one in hearer.said() if not isinstance(one, TranscriptProgress)}
        assert answered & {long, waits, last.message} == {last.message}
        assert hearer.progress(waits) == []
        assert hearer.watched.states() == ["starting", "warming", "ready"]

    listen(story)


def test_a_deadline_ends_the_clip_by_name_and_the_next_one_is_heard(listen: Listen) -> None:
    async def story(hearer: Hearer) -> None:
        late = await hearer.hear(two_windows().content, deadline_seconds=0.2)
        assert isinstance(late, NotTranscribed)
        assert late.reason == "transcribing took longer than 0.2 s"
        await heard(hearer, clip("young_man"))

    listen(story)


def test_hints_and_languages_are_taken_or_refused_by_name() -> None:
    async def story() -> None:
        async with hearing(prompt="A novel by Jane Austen.") as hearer:
            answer = await heard(hearer, clip("leisure"), hotwords="Dashwood", language="en")
            assert "Dashwood" in answer.text
            other = await hearer.hear(clip("leisure"), language="de")
            assert isinstance(other, NotTranscribed)
            assert other.reason == "this STT model knows English only, not 'de'"
            assert "models pull base" in other.hint

    run(story())


def test_weights_that_left_memory_come_back_for_the_next_clip() -> None:
    async def story() -> None:
        async with hearing(idle_seconds=0.1) as hearer:
            first = await heard(hearer, clip("young_man"))
            await hearer.watched.until(lambda: hearer.watched.reports[-1].detail == "tiny.en, resting")
            told = len(hearer.watched.reports)
            assert (await heard(hearer, clip("young_man"))).text == first.text
            await hearer.watched.until(lambda: len(hearer.watched.reports) == told + 2)
            back, again = (report.detail for report in hearer.watched.reports[told:])
            assert (back, again) == ("tiny.en", "tiny.en, resting")

    run(story())
