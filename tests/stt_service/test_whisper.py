"""The model itself, loaded once: three methods, hints within bounds, and weights that come back."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stt_service.errors import CannotTranscribe
from stt_service.sound import RATE
from stt_service.whisper import FasterWhisper, ModelOutput, Samples, TranscribeOptions, _hints, find_voice
from tests.stt_service.sounds import SAID, samples_of, silence
from tests.stt_service.wording import errors
from tests.waiting import until
from tests.weights import pulled

ANY = TranscribeOptions()


@pytest.fixture(scope="module")
def whisper() -> FasterWhisper:
    model = FasterWhisper(pulled("tiny.en") / "tiny.en", 1)
    model.warm_up()
    return model


def speech(name: str = "young_man") -> Samples:
    return samples_of(name).astype(np.float32) / 32768.0


def test_the_fast_and_the_full_method_hear_the_same(whisper: FasterWhisper) -> None:
    fast, full = whisper.transcribe_fast(speech(), ANY), whisper.transcribe_full(speech(), ANY)
    for found in (fast, full):
        assert errors(SAID["young_man"], found.text) <= 2
        assert found.language == "en"
        assert -0.6 < found.confidence < 0
        assert found.silence_probability < 0.3
    assert fast == whisper.transcribe_fast(speech(), ANY), "nothing is drawn by lot"


def test_the_long_method_gives_pieces_with_their_ends(whisper: FasterWhisper) -> None:
    pieces = list(whisper.transcribe_long(speech("ask_not"), TranscribeOptions(prompt="A speech.")))
    assert errors(SAID["ask_not"], " ".join(piece.text for piece in pieces)) <= 2
    assert not any(piece.has_failed for piece in pieces)
    ends = [piece.until_seconds for piece in pieces]
    assert ends == sorted(ends)
    assert ends[-1] == pytest.approx(len(speech("ask_not")) / RATE, abs=1.5)


def test_released_weights_come_back_with_the_next_clip(whisper: FasterWhisper) -> None:
    def released() -> bool:
        """The library keeps them until its threads are done with the last clip, which is soon."""
        whisper.release()
        return not whisper._model.model_is_loaded

    before = whisper.transcribe_fast(speech(), ANY)
    until(released)
    assert whisper.transcribe_fast(speech(), ANY) == before
    until(released)
    assert list(whisper.transcribe_long(speech(), ANY))


def test_a_language_is_taken_or_refused_by_name(whisper: FasterWhisper) -> None:
    assert whisper.language_fault(None) is None
    assert whisper.language_fault("en") is None
    refused = whisper.language_fault("de")
    assert refused is not None
    assert refused[0] == "this STT model knows English only, not 'de'"
    german = TranscribeOptions("de")
    for transcribe in (whisper.transcribe_fast, whisper.transcribe_full):
        with pytest.raises(CannotTranscribe, match="knows English only"):
            transcribe(speech()[:RATE], german)
    with pytest.raises(CannotTranscribe, match="knows English only"):
        next(whisper.transcribe_long(speech()[:RATE], german))


def test_hints_come_before_the_transcript_and_are_bounded(whisper: FasterWhisper) -> None:
    tokenizer = whisper._tokenizer(whisper._encode(speech(), 15.0), "en")
    assert _hints(tokenizer, ANY) == []
    hotwords, prompt = "Dashwood " * 500, "Austen " * 500
    both = _hints(tokenizer, TranscribeOptions(hotwords=hotwords, prompt=prompt))
    assert both[0] == tokenizer.sot_prev
    assert len(both) == 1 + 110 + 110
    words = tokenizer.decode(both[1:])
    assert words.startswith(" Dashwood")
    assert words.rstrip().endswith("Austen")
    assert tokenizer.decode(_hints(tokenizer, TranscribeOptions(prompt="Names: Ada."))[1:]) == " Names: Ada."


def test_voice_is_found_where_it_is_and_cut_where_it_is_too_long() -> None:
    clip = np.concatenate([silence(2), samples_of("young_man"), silence(2)]).astype(np.float32) / 32768.0
    voiced = find_voice(clip, 30.0)
    assert voiced
    assert 1.5 * RATE < voiced[0][0] < voiced[-1][1] < len(clip) - RATE
    assert find_voice(silence(2).astype(np.float32), 30.0) == []
    assert len(find_voice(clip, 1.0)) > len(voiced)


class Scripted(FasterWhisper):
    """Its model gives texts of these confidences, each named by its beam; `decoded` is how it was asked."""

    def __init__(self, *confidences: float) -> None:
        self._confidences = list(confidences)
        self.windows: list[float] = []
        self.decoded: list[tuple[list[Any], int, int]] = []

    def _encode(self, samples: Samples, window_seconds: float) -> Any:
        self.windows.append(window_seconds)

    def _tokenizer(self, encoded: Any, language: str | None) -> Any:
        return SimpleNamespace(
            sot_prev="before", sot_sequence=["start"], no_timestamps="plain", encode=lambda text: [text]
        )

    def _generate(self, encoded: Any, tokenizer: Any, prompt: list[Any], tokens_max: int, beam: int) -> Any:
        self.decoded.append((prompt, tokens_max, beam))
        return ModelOutput(f"by {beam}", "en", self._confidences.pop(0), 0.0)


def lasting(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE), np.float32)


def test_an_unsure_text_is_decoded_again_and_the_surer_one_is_kept() -> None:
    for confidences, text in (((-0.1,), "by 1"), ((-0.5, -0.3), "by 5"), ((-0.5, -0.9), "by 1")):
        model = Scripted(*confidences)
        assert model.transcribe_fast(lasting(3), ANY).text == text
        assert len(model.decoded) == len(confidences)


def test_the_window_and_the_tokens_follow_the_length_of_the_clip_within_bounds() -> None:
    model = Scripted(0.0, 0.0, 0.0)
    for seconds in (1, 20, 29):
        model.transcribe_fast(lasting(seconds), ANY)
    assert model.windows == [15.0, 23.0, 30.0]
    assert [tokens for _, tokens, _ in model.decoded] == [52, 224, 224]


def test_the_full_method_has_the_hints_a_whole_window_and_timestamps() -> None:
    model = Scripted(0.0)
    model.transcribe_full(lasting(3), TranscribeOptions(prompt="Ada", hotwords="Dashwood"))
    assert model.decoded == [(["before", " Dashwood", " Ada", "start"], 224, 5)]
    assert model.windows == [30.0]


class Library:
    """Gives one piece, and keeps what it was asked."""

    def __init__(self, packing: float, confidence: float) -> None:
        self._piece = SimpleNamespace(
            text=" words", avg_logprob=confidence, compression_ratio=packing, no_speech_prob=0.0, end=3.0
        )
        self.asked: dict[str, Any] = {}

    def transcribe(self, samples: Samples, **asked: Any) -> Any:
        self.asked = asked
        return [self._piece], SimpleNamespace(language="en")


@pytest.mark.parametrize(
    ("packing", "confidence", "has_failed"), [(1.5, -0.3, False), (2.5, -0.3, True), (1.5, -1.1, True)]
)
def test_a_piece_has_failed_when_it_repeats_itself_or_is_a_guess(
    packing: float, confidence: float, has_failed: bool
) -> None:
    model, library = FasterWhisper.__new__(FasterWhisper), Library(packing, confidence)
    model._whisper = library
    model._model = SimpleNamespace(is_multilingual=True, model_is_loaded=True)
    model._load_lock = threading.Lock()
    (piece,) = model.transcribe_long(lasting(3), TranscribeOptions("de", " Ada ", " Dashwood "))
    assert piece == ModelOutput("words", "en", confidence, 0.0, has_failed, 3.0)
    asked = {"language": "de", "temperature": 0.0, "initial_prompt": "Ada", "hotwords": "Dashwood"}
    assert library.asked == asked


def test_a_language_that_is_none_is_refused_by_weights_that_know_several() -> None:
    model = FasterWhisper.__new__(FasterWhisper)
    model._model = SimpleNamespace(is_multilingual=True)
    assert model.language_fault("de") is None
    refused = model.language_fault("german")
    assert refused is not None
    assert refused[0] == "there is no language 'german'"
