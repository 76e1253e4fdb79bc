"""The local engine with a scripted model: which of its methods is used, and what becomes of its texts."""

import asyncio
from collections.abc import Iterator

import numpy as np

from stt_service.containers import sniff
from stt_service.engines import Clip, LocalEngine, Transcript
from stt_service.lanes import Lane
from stt_service.segments import Segment, cut
from stt_service.sound import RATE, Sound
from stt_service.whisper import ModelOutput, Samples, TranscribeOptions

SENTENCE = "we go to the sea tomorrow morning and swim there"
OTHER = "and then we come back in the evening when it is late"
SHORT = "we go"
LOOP = "no " * 60
# Twice eight seconds, with a long pause between them; and twenty without a pause to cut at.
TWO_PARTS = ((1.0, 9.0), (13.0, 21.0))
STRETCH = ((1.0, 6.0), (6.5, 12.0), (12.5, 18.0), (18.5, 21.0))


def output(text: str, language: str = "en", confidence: float = -0.1, **more: float | bool) -> ModelOutput:
    silence = float(more.pop("silence", 0.0))
    failed, until = bool(more.pop("failed", False)), float(more.pop("until", 0.0))
    assert not more
    return ModelOutput(text, language, confidence, silence, failed, until)


class Script:
    """A model that gives the next of its outputs, and keeps what it was asked."""

    def __init__(
        self,
        *,
        fast: tuple[ModelOutput, ...] = (),
        full: tuple[ModelOutput, ...] = (),
        long: tuple[ModelOutput, ...] = (),
    ) -> None:
        self._fast, self._full, self._long = list(fast), list(full), long
        self.asked: list[tuple[str, str | None]] = []
        self.released = 0

    def transcribe_fast(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        self.asked.append(("fast", options.language))
        return self._fast.pop(0)

    def transcribe_full(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        self.asked.append(("full", options.language))
        return self._full.pop(0)

    def transcribe_long(self, samples: Samples, options: TranscribeOptions) -> Iterator[ModelOutput]:
        self.asked.append(("long", options.language))
        yield from self._long

    def release(self) -> None:
        self.released += 1


def segments(*voiced: tuple[float, float]) -> list[Segment]:
    sound = Sound(np.zeros(30 * RATE, np.int16).tobytes())
    return cut(sound, lambda samples, most: [(int(a * RATE), int(b * RATE)) for a, b in voiced])


def transcribed(
    model: Script, *voiced: tuple[float, float], options: TranscribeOptions | None = None
) -> tuple[Transcript, list[tuple[float, str]]]:
    """The transcript of a clip with voice at these times, and its progress."""
    progress: list[tuple[float, str]] = []
    clip = Clip(b"OggS", sniff(b"OggS" + bytes(30)), Sound(b""))

    async def act() -> Transcript:
        return await LocalEngine("tiny", model).transcribe(
            clip,
            segments(*voiced),
            options or TranscribeOptions(),
            Lane("test"),
            lambda seconds, text: progress.append((round(seconds, 1), text)),
        )

    return asyncio.run(act()), progress


def test_the_language_of_the_first_part_is_that_of_the_clip() -> None:
    """A later part may be too short to detect it."""
    model = Script(fast=(output(SENTENCE, "de"), output(OTHER, "de")))
    found, progress = transcribed(model, *TWO_PARTS)
    assert found == Transcript(f"{SENTENCE} {OTHER}", "de")
    assert model.asked == [("fast", None), ("fast", "de")]
    assert progress == [(9.4, SENTENCE), (21.4, f"{SENTENCE} {OTHER}")]


def test_words_that_the_model_invents_are_left_out_and_their_language_too() -> None:
    model = Script(
        fast=(output("thank you", "nn", -0.9), output(SENTENCE, "de")), full=(output("you", "nn"),)
    )
    found, _ = transcribed(model, *TWO_PARTS, options=TranscribeOptions(prompt="names"))
    assert found == Transcript(SENTENCE, "de")
    assert model.asked == [("fast", None), ("full", None), ("fast", None)]


def test_a_clip_without_words_keeps_the_language_that_was_asked_for() -> None:
    found, _ = transcribed(Script(fast=(output("[MUSIC]"),)), (1.0, 2.0), options=TranscribeOptions("fr"))
    assert found == Transcript("", "fr")


def test_a_doubtful_text_is_transcribed_again_with_the_full_method() -> None:
    model = Script(fast=(output(SHORT),), full=(output(SENTENCE),))
    assert transcribed(model, (1.0, 6.0))[0].text == SENTENCE
    assert model.asked == [("fast", None), ("full", None)]


def test_where_the_full_method_does_no_better_the_first_text_stays_without_its_loop() -> None:
    model = Script(fast=(output(LOOP),), full=(output(SHORT),))
    assert transcribed(model, (1.0, 6.0))[0].text == "no"


def test_a_stretch_without_a_pause_is_transcribed_in_one_go() -> None:
    model = Script(
        long=(output(SENTENCE, "de", -0.9, silence=0.1, until=9.0), output(OTHER, "de", until=99.0))
    )
    found, progress = transcribed(model, *STRETCH)
    assert found == Transcript(f"{SENTENCE} {OTHER}", "de")
    assert model.asked == [("long", None)]
    assert progress[:2] == [(9.6, SENTENCE), (21.4, f"{SENTENCE} {OTHER}")], "no step is beyond its end"


def test_the_text_of_earlier_parts_stands_before_that_of_a_stretch() -> None:
    model = Script(fast=(output(SENTENCE),), long=(output(OTHER, until=5.0),))
    _, progress = transcribed(model, (1.0, 6.0), (9.0, 14.0), (14.5, 20.0), (20.5, 25.0))
    assert progress[:2] == [(6.4, SENTENCE), (13.6, f"{SENTENCE} {OTHER}")]


def test_a_stretch_whose_transcription_fails_is_cut_and_its_parts_are_doubtful() -> None:
    for long in ((), (output(SENTENCE), output(LOOP, failed=True))):
        model = Script(full=(output(SENTENCE * 2), output(SHORT)), fast=(output(OTHER),), long=long)
        found, _ = transcribed(model, *STRETCH)
        assert found.text == f"{SENTENCE * 2} {OTHER}"
        assert [method for method, _ in model.asked] == ["long", "full", "full", "fast"]


def test_a_release_reaches_the_model() -> None:
    model = Script()
    LocalEngine("tiny", model).release()
    assert model.released == 1


def test_a_stretch_is_invented_only_if_all_of_its_pieces_are() -> None:
    sure = output(SENTENCE, confidence=-0.2, silence=0.1, until=9.0)
    guess = output(OTHER, confidence=-1.7, silence=0.9, until=20.0)
    for pieces in ((sure, guess), (guess, sure)):
        found, _ = transcribed(Script(long=pieces), *STRETCH)
        assert sorted(found.text.split()) == sorted(f"{SENTENCE} {OTHER}".split())
    faint = output(OTHER, confidence=-1.1, silence=0.9, until=20.0)
    clear = output(SENTENCE, confidence=-1.2, silence=0.1, until=9.0)
    assert transcribed(Script(long=(faint, clear)), *STRETCH)[0].text
