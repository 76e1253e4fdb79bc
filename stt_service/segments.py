"""Speech cut into parts that the model can take at once, of even length and at pauses, without silence."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stt_service.engine import Samples
from stt_service.sound import RATE, Sound

# Under the model's window of thirty seconds, with room for a word that runs over.
_SEGMENT_SECONDS_MAX = 28.0
# How far a cut may move to find a pause.
_PLAY_SECONDS = 3.0

FindSpeech = Callable[[Samples, float], list[tuple[int, int]]]


@dataclass(frozen=True)
class Segment:
    """Speech to be heard at once; when it is done, the clip is done up to `until_seconds`."""

    samples: Samples
    until_seconds: float


def cut(sound: Sound, find_speech: FindSpeech) -> list[Segment]:
    """The segments of a clip, none when nobody speaks."""
    samples = np.frombuffer(sound.samples, np.int16).astype(np.float32) / 32768.0
    longest = _longest_seconds(sound.seconds)
    return list(_packed(samples, find_speech(samples, longest), int(longest * RATE)))


def _longest_seconds(seconds: float) -> float:
    """Even parts: a clip of 30 s is two of 15, not 28 and a rest that costs as much as half a window."""
    parts = math.ceil(seconds / _SEGMENT_SECONDS_MAX)
    return _SEGMENT_SECONDS_MAX if parts <= 1 else min(_SEGMENT_SECONDS_MAX, seconds / parts + _PLAY_SECONDS)


def _packed(samples: Samples, spans: list[tuple[int, int]], longest: int) -> Iterator[Segment]:
    waiting: list[tuple[int, int]] = []
    for span in spans:
        if waiting and sum(end - first for first, end in [*waiting, span]) > longest:
            yield _joined(samples, waiting)
            waiting = []
        waiting.append(span)
    if waiting:
        yield _joined(samples, waiting)


def _joined(samples: Samples, spans: list[tuple[int, int]]) -> Segment:
    return Segment(np.concatenate([samples[first:end] for first, end in spans]), spans[-1][1] / RATE)
