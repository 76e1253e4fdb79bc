"""The only module that uses faster-whisper: samples in, text out, deterministic.

There are three methods. The fast one gives the encoder the existing sound and a margin, instead of always
thirty seconds, and decodes without timestamps. The full one does as the library does with one window: thirty
seconds, a beam, and timestamps, which keep the decoder at its position in the sound. The long one is the
library's own, window by window with the preceding text as context. None of them samples at random.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ipc.cpus import OPENMP_SPINS

# Set before the import below: weights come from the disk only; no library looks them up on the network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GOMP_SPINCOUNT"] = OPENMP_SPINS

import ctranslate2  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from faster_whisper import WhisperModel  # type: ignore[import-untyped]
from faster_whisper.tokenizer import _LANGUAGE_CODES, Tokenizer  # type: ignore[import-untyped]
from faster_whisper.vad import VadOptions, get_speech_timestamps  # type: ignore[import-untyped]

from stt_service import transcript_checks
from stt_service.errors import CannotTranscribe
from stt_service.sound import RATE

Samples = npt.NDArray[np.float32]

# Two clips at once, so that a command does not wait for a long recording. The weights are shared.
LANES = 2
# The window that the model was trained with.
WINDOW_SECONDS_MAX = 30.0
# Below these the decoder runs past the end of the sound and loops.
_WINDOW_SECONDS_MIN = 15.0
_MARGIN_SECONDS = 3.0
_FRAMES_PER_SECOND = 100
# Between two phrases; pauses between words are shorter.
_PAUSE_MS_MIN = 200
_CAREFUL_BEAM = 5
# Above the fastest speaker in the most verbose script; a decoder that writes more is in a loop.
_TOKENS_PER_SECOND_MAX = 20
_TOKENS_MIN = 32
# The decoder has 448 positions. Half of them are for hints, as in training.
_TOKENS_MAX = 448
_HINT_TOKENS_MAX = 110


@dataclass(frozen=True)
class TranscribeOptions:
    """Options of one transcription; a `language` of None lets the model detect it."""

    language: str | None = None
    prompt: str = ""
    hotwords: str = ""


@dataclass(frozen=True)
class ModelOutput:
    """Output of the model. `confidence` is the mean log probability of the tokens."""

    text: str
    language: str
    confidence: float
    silence_probability: float
    # The library would reject this text: its compression ratio is too high, or it is a guess.
    has_failed: bool = False
    # The end of this piece within a longer recording.
    until_seconds: float = 0.0


class SttModel(Protocol):
    """A speech-to-text model; safe to use from LANES threads at once."""

    def transcribe_fast(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        """Transcribes up to thirty seconds, fast."""

    def transcribe_full(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        """Transcribes up to thirty seconds, slower, for sound whose first transcript is doubtful."""

    def transcribe_long(self, samples: Samples, options: TranscribeOptions) -> Iterator[ModelOutput]:
        """Transcribes any length, about a sentence a step; a step takes at most one window of the model."""

    def release(self) -> None:
        """Frees the weights until the next call."""


def find_voice(samples: Samples, longest_seconds: float) -> list[tuple[int, int]]:
    """Returns the voiced ranges as (first, end) of samples, without a margin, each at most that long."""
    options = VadOptions(
        min_speech_duration_ms=120,
        max_speech_duration_s=longest_seconds,
        min_silence_duration_ms=_PAUSE_MS_MIN,
        speech_pad_ms=0,
    )
    return [(int(part["start"]), int(part["end"])) for part in get_speech_timestamps(samples, options)]


class FasterWhisper:
    """A Whisper model on the CPU, quantised to eight-bit integers."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._whisper = WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads or min(4, len(os.sched_getaffinity(0))),
            num_workers=LANES,
            local_files_only=True,
        )
        self._model = self._whisper.model
        self._load_lock = threading.Lock()

    def warm_up(self) -> None:
        """Runs the whole path once, so that the first clip does not wait for pages to be read from disk.

        A second of sound in a window of a second: a longer window computes more and reads no other page.
        """
        hiss = np.random.default_rng(0).normal(0, 0.01, RATE).astype(np.float32)
        find_voice(hiss, WINDOW_SECONDS_MAX)
        encoded = self._encode(hiss, window_seconds=1.0)
        tokenizer = self._tokenizer(encoded, "en")
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        self._generate(encoded, tokenizer, prompt, tokens_max=1, beam=1)

    def language_fault(self, language: str | None) -> tuple[str, str] | None:
        """Returns why this language is not possible, and a hint."""
        if language is None:
            return None
        if not self._model.is_multilingual and language != "en":
            hint = 'set model = "base" under [stt], then hermesctl models pull base'
            return f"this STT model knows English only, not '{language}'", hint
        if language not in _LANGUAGE_CODES:
            return f"there is no language '{language}'", "use a code such as en, de, fr or zh"
        return None

    def release(self) -> None:
        with self._load_lock:
            self._model.unload_model()

    def transcribe_fast(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        """Uses one encoding to detect the language, to decode, and to decode again with a beam if unsure."""
        seconds = len(samples) / RATE
        window = min(WINDOW_SECONDS_MAX, max(_WINDOW_SECONDS_MIN, seconds + _MARGIN_SECONDS))
        tokens_max = min(_TOKENS_MAX // 2, _TOKENS_MIN + int(seconds * _TOKENS_PER_SECOND_MAX))
        encoded = self._encode(samples, window)
        tokenizer = self._tokenizer(encoded, options.language)
        prompt = [*_hints(tokenizer, options), *tokenizer.sot_sequence, tokenizer.no_timestamps]
        found = self._generate(encoded, tokenizer, prompt, tokens_max, beam=1)
        if found.confidence < transcript_checks.UNSURE:
            careful = self._generate(encoded, tokenizer, prompt, tokens_max, beam=_CAREFUL_BEAM)
            if careful.confidence > found.confidence:
                found = careful
        return found

    def transcribe_full(self, samples: Samples, options: TranscribeOptions) -> ModelOutput:
        encoded = self._encode(samples, WINDOW_SECONDS_MAX)
        tokenizer = self._tokenizer(encoded, options.language)
        prompt = [*_hints(tokenizer, options), *tokenizer.sot_sequence]
        return self._generate(encoded, tokenizer, prompt, _TOKENS_MAX // 2, beam=_CAREFUL_BEAM)

    def transcribe_long(self, samples: Samples, options: TranscribeOptions) -> Iterator[ModelOutput]:
        """Uses the library's defaults, but does not repeat a failed try with random sampling."""
        self._load()
        if fault := self.language_fault(options.language):
            raise CannotTranscribe(*fault)
        pieces, about = self._whisper.transcribe(
            samples,
            language=options.language,
            temperature=0.0,
            initial_prompt=options.prompt.strip() or None,
            hotwords=options.hotwords.strip() or None,
        )
        for piece in pieces:
            yield ModelOutput(
                piece.text.strip(),
                about.language,
                piece.avg_logprob,
                piece.no_speech_prob,
                has_failed=piece.compression_ratio > transcript_checks.PACKING_MAX
                or piece.avg_logprob < transcript_checks.GUESS,
                until_seconds=piece.end,
            )

    def _load(self) -> None:
        with self._load_lock:
            if not self._model.model_is_loaded:
                self._model.load_model()

    def _encode(self, samples: Samples, window_seconds: float) -> ctranslate2.StorageView:
        self._load()
        padded = np.zeros(int(window_seconds * RATE), np.float32)
        padded[: len(samples)] = samples[: len(padded)]
        features = self._whisper.feature_extractor(padded, padding=0)
        frames = features[None, :, : int(window_seconds * _FRAMES_PER_SECOND)]
        return self._model.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(frames)))

    def _tokenizer(self, encoded: ctranslate2.StorageView, language: str | None) -> Tokenizer:
        if fault := self.language_fault(language):
            raise CannotTranscribe(*fault)
        tokenizer = self._whisper.hf_tokenizer
        if not self._model.is_multilingual:
            return Tokenizer(tokenizer, multilingual=False)
        if language is None:
            likeliest = self._model.detect_language(encoded)[0][0][0]
            language = likeliest.strip("<|>")
        return Tokenizer(tokenizer, multilingual=True, task="transcribe", language=language)

    def _generate(
        self,
        encoded: ctranslate2.StorageView,
        tokenizer: Tokenizer,
        prompt: list[int],
        tokens_max: int,
        beam: int,
    ) -> ModelOutput:
        (result,) = self._model.generate(
            encoded,
            [prompt],
            max_length=min(_TOKENS_MAX, len(prompt) + tokens_max),
            return_scores=True,
            return_no_speech_prob=True,
            beam_size=beam,
        )
        text = tokenizer.decode(result.sequences_ids[0]).strip()
        return ModelOutput(text, tokenizer.language_code, result.scores[0], result.no_speech_prob)


def _hints(tokenizer: Tokenizer, options: TranscribeOptions) -> list[int]:
    """Returns hotwords and prompt as the text before the transcript."""
    hints: list[int] = []
    if options.hotwords.strip():
        hints += tokenizer.encode(f" {options.hotwords.strip()}")[:_HINT_TOKENS_MAX]
    if options.prompt.strip():
        hints += tokenizer.encode(f" {options.prompt.strip()}")[-_HINT_TOKENS_MAX:]
    return [tokenizer.sot_prev, *hints] if hints else []
