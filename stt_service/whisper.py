"""The only place that touches faster-whisper: speech in, words out, repeatable.

There are three ways. The fast one gives the encoder as much sound as there is and a margin, instead of always
thirty seconds, and lets the decoder write without time stamps. The full one does as the library would with
one window: thirty seconds, a beam, and time stamps, which hold a decoder to its place in the sound. The long
one is the library's own, window by window with the text so far. Nothing is drawn at random.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# Before the import below: weights come from the disk alone, whatever a library would like to look up.
os.environ["HF_HUB_OFFLINE"] = "1"

import ctranslate2  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from faster_whisper import WhisperModel  # type: ignore[import-untyped]
from faster_whisper.tokenizer import _LANGUAGE_CODES, Tokenizer  # type: ignore[import-untyped]
from faster_whisper.vad import VadOptions, get_speech_timestamps  # type: ignore[import-untyped]

from stt_service import transcript_checks
from stt_service.errors import CannotHear
from stt_service.sound import RATE

Samples = npt.NDArray[np.float32]

# Two clips at once: a command need not wait behind a long recording. The weights are shared.
LANES = 2
# What the model was trained with.
WINDOW_SECONDS_MAX = 30.0
# Below these the decoder runs past the end of the sound and loops.
_WINDOW_SECONDS_MIN = 15.0
_MARGIN_SECONDS = 3.0
_FRAMES_PER_SECOND = 100
# Between two phrases; words follow each other faster.
_PAUSE_MS_MIN = 200
_CAREFUL_BEAM = 5
# The fastest speech in the wordiest writing; beyond it the decoder is in a loop.
_TOKENS_PER_SECOND_MAX = 20
_TOKENS_MIN = 32
# The decoder has 448 places. Half of them are for hints, as the model was trained.
_TOKENS_MAX = 448
_HINT_TOKENS_MAX = 110


@dataclass(frozen=True)
class Wish:
    """How to listen: `language` of None lets the model tell."""

    language: str | None = None
    prompt: str = ""
    hotwords: str = ""


@dataclass(frozen=True)
class Understood:
    """What was heard. `confidence` is the mean logarithm of the words' probabilities."""

    text: str
    language: str
    confidence: float
    no_speech: float
    # The library would not take this text: it packs too well, or is a guess.
    has_failed: bool = False
    # Where a piece of something longer ends.
    until_seconds: float = 0.0


class Engine(Protocol):
    """Something that understands speech; safe to use from LANES threads at once."""

    def listen(self, samples: Samples, wish: Wish) -> Understood:
        """Fast, up to thirty seconds."""

    def listen_fully(self, samples: Samples, wish: Wish) -> Understood:
        """Slower, up to thirty seconds, for sound whose text was doubtful."""

    def listen_long(self, samples: Samples, wish: Wish) -> Iterator[Understood]:
        """Any length, a sentence or so at a time; a step takes at most one window of the model."""

    def release(self) -> None:
        """Gives its memory back until it listens again."""


def find_speech(samples: Samples, longest_seconds: float) -> list[tuple[int, int]]:
    """Where somebody speaks, as (first, end) of samples, without a margin; each part at most so long."""
    options = VadOptions(
        min_speech_duration_ms=120,
        max_speech_duration_s=longest_seconds,
        min_silence_duration_ms=_PAUSE_MS_MIN,
        speech_pad_ms=0,
    )
    return [(int(part["start"]), int(part["end"])) for part in get_speech_timestamps(samples, options)]


class FasterWhisper:
    """A Whisper model on the CPU, in whole numbers of eight bits."""

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
        self._memory = threading.Lock()

    def warm_up(self) -> None:
        """Once through all of it, so that the first clip finds everything read in."""
        hiss = np.random.default_rng(0).normal(0, 0.01, RATE).astype(np.float32)
        find_speech(hiss, WINDOW_SECONDS_MAX)
        self.listen(hiss, Wish("en"))

    def language_fault(self, language: str | None) -> tuple[str, str] | None:
        """Why this language cannot be understood, and the remedy."""
        if language is None:
            return None
        if not self._model.is_multilingual and language != "en":
            remedy = 'set model = "base" under [stt], then hermesctl models pull base'
            return f"this speech model knows English only, not '{language}'", remedy
        if language not in _LANGUAGE_CODES:
            return f"there is no language '{language}'", "use a code such as en, de, fr or zh"
        return None

    def release(self) -> None:
        with self._memory:
            self._model.unload_model()

    def listen(self, samples: Samples, wish: Wish) -> Understood:
        """One encoding serves to tell the language, to write the words, and to write them again with care."""
        seconds = len(samples) / RATE
        window = min(WINDOW_SECONDS_MAX, max(_WINDOW_SECONDS_MIN, seconds + _MARGIN_SECONDS))
        tokens_max = min(_TOKENS_MAX // 2, _TOKENS_MIN + int(seconds * _TOKENS_PER_SECOND_MAX))
        encoded = self._encode(samples, window)
        tokenizer = self._tokenizer(encoded, wish.language)
        prompt = [*_hints(tokenizer, wish), *tokenizer.sot_sequence, tokenizer.no_timestamps]
        found = self._write(encoded, tokenizer, prompt, tokens_max, beam=1)
        if found.confidence < transcript_checks.UNSURE:
            careful = self._write(encoded, tokenizer, prompt, tokens_max, beam=_CAREFUL_BEAM)
            if careful.confidence > found.confidence:
                found = careful
        return found

    def listen_fully(self, samples: Samples, wish: Wish) -> Understood:
        encoded = self._encode(samples, WINDOW_SECONDS_MAX)
        tokenizer = self._tokenizer(encoded, wish.language)
        prompt = [*_hints(tokenizer, wish), *tokenizer.sot_sequence]
        return self._write(encoded, tokenizer, prompt, _TOKENS_MAX // 2, beam=_CAREFUL_BEAM)

    def listen_long(self, samples: Samples, wish: Wish) -> Iterator[Understood]:
        """With the library's defaults, but for the drawing at random where its first try has failed."""
        self._load()
        if fault := self.language_fault(wish.language):
            raise CannotHear(*fault)
        pieces, about = self._whisper.transcribe(
            samples,
            language=wish.language,
            temperature=0.0,
            initial_prompt=wish.prompt.strip() or None,
            hotwords=wish.hotwords.strip() or None,
        )
        for piece in pieces:
            yield Understood(
                piece.text.strip(),
                about.language,
                piece.avg_logprob,
                piece.no_speech_prob,
                has_failed=piece.compression_ratio > transcript_checks.PACKING_MAX
                or piece.avg_logprob < transcript_checks.GUESS,
                until_seconds=piece.end,
            )

    def _load(self) -> None:
        with self._memory:
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
            raise CannotHear(*fault)
        tokenizer = self._whisper.hf_tokenizer
        if not self._model.is_multilingual:
            return Tokenizer(tokenizer, multilingual=False)
        if language is None:
            likeliest = self._model.detect_language(encoded)[0][0][0]
            language = likeliest.strip("<|>")
        return Tokenizer(tokenizer, multilingual=True, task="transcribe", language=language)

    def _write(
        self,
        encoded: ctranslate2.StorageView,
        tokenizer: Tokenizer,
        prompt: list[int],
        tokens_max: int,
        beam: int,
    ) -> Understood:
        (result,) = self._model.generate(
            encoded,
            [prompt],
            max_length=min(_TOKENS_MAX, len(prompt) + tokens_max),
            return_scores=True,
            return_no_speech_prob=True,
            beam_size=beam,
        )
        text = tokenizer.decode(result.sequences_ids[0]).strip()
        return Understood(text, tokenizer.language_code, result.scores[0], result.no_speech_prob)


def _hints(tokenizer: Tokenizer, wish: Wish) -> list[int]:
    """Words to expect, and the style to write in, as text that came before."""
    hints: list[int] = []
    if wish.hotwords.strip():
        hints += tokenizer.encode(f" {wish.hotwords.strip()}")[:_HINT_TOKENS_MAX]
    if wish.prompt.strip():
        hints += tokenizer.encode(f" {wish.prompt.strip()}")[-_HINT_TOKENS_MAX:]
    return [tokenizer.sot_prev, *hints] if hints else []
