"""Speech cut into parts for the model, in the longest pauses, without long silence.

A part is so short that its sound and the margin fill the model's shortest window. In a longer part the
decoder leaves sentences out, or loses count when something is said several times; the text is fluent all the
same and the model as sure of it as ever. A part is no shorter than it must be: each costs a window, and
context helps to understand it. So a clip is cut into as few parts as possible, where the pauses are longest.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stt_service.engine import Samples
from stt_service.sound import RATE, Sound

PART_SECONDS_MAX = 12.0
# Kept before and after speech: a soft first or last sound is not found as speech.
_PADDING = int(0.4 * RATE)
# A shorter pause is kept whole, for it may hold a word that was not found as speech. A longer one is silence.
_PAUSE_KEPT = 2 * RATE
# The words of a shorter part lack the context of their neighbours.
_GOOD = 3 * RATE


@dataclass(frozen=True)
class Phrase:
    """Speech between two pauses: where somebody speaks, and the wider part of the clip that is heard."""

    speech: tuple[int, int]
    heard: tuple[int, int]

    @property
    def length(self) -> int:
        return self.heard[1] - self.heard[0]


@dataclass(frozen=True)
class Segment:
    """Phrases to be heard at once."""

    clip: Samples
    phrases: tuple[Phrase, ...]

    @property
    def samples(self) -> Samples:
        return np.concatenate([self.clip[slice(*phrase.heard)] for phrase in self.phrases])

    @property
    def spoken_seconds(self) -> float:
        return sum(phrase.speech[1] - phrase.speech[0] for phrase in self.phrases) / RATE

    @property
    def until_seconds(self) -> float:
        """When it is done, the clip is done up to here."""
        return self.phrases[-1].heard[1] / RATE


FindSpeech = Callable[[Samples, float], list[tuple[int, int]]]


def cut(sound: Sound, find_speech: FindSpeech) -> list[Segment]:
    """The segments of a clip, none when nobody speaks."""
    clip = np.frombuffer(sound.samples, np.int16).astype(np.float32) / 32768.0
    spoken = find_speech(clip, PART_SECONDS_MAX - _PAUSE_KEPT / RATE)
    return _segments(clip, _widened(spoken, len(clip)))


def _widened(spoken: list[tuple[int, int]], end: int) -> tuple[Phrase, ...]:
    """With what is around: half of a short pause each, or the padding."""
    phrases = []
    before = -_PAUSE_KEPT - 1
    starts_after = [*(first for first, _ in spoken[1:]), end + _PAUSE_KEPT + 1]
    for (first, last), after in zip(spoken, starts_after, strict=True):
        start = (before + first) // 2 if first - before <= _PAUSE_KEPT else first - _PADDING
        stop = (last + after) // 2 if after - last <= _PAUSE_KEPT else last + _PADDING
        phrases.append(Phrase((first, last), (max(start, 0), min(stop, end))))
        before = last
    return tuple(phrases)


def _segments(clip: Samples, phrases: tuple[Phrase, ...]) -> list[Segment]:
    """As few as possible, and among these ways the one with the best cuts."""
    # Of the first n phrases: (number of parts, minus the worth of the cuts, where the last part begins).
    best = [(0, 0.0, 0)]
    for end in range(1, len(phrases) + 1):
        ways = []
        length = 0
        for first in reversed(range(end)):
            length += phrases[first].length
            if length > PART_SECONDS_MAX * RATE and first < end - 1:
                break
            parts, worth, _ = best[first]
            ways.append((parts + 1, worth - _worth(phrases, first, end, length), first))
        best.append(min(ways))
    found: list[Segment] = []
    end = len(phrases)
    while end:
        first = best[end][2]
        found.insert(0, Segment(clip, phrases[first:end]))
        end = first
    return found


def _worth(phrases: tuple[Phrase, ...], first: int, end: int, length: int) -> float:
    """Of the cuts around a part: long pauses, unless the part becomes too short."""
    around = [
        _pause(phrases[place - 1], phrases[place]) for place in (first, end) if 0 < place < len(phrases)
    ]
    return sum(min(pause, _PAUSE_KEPT) for pause in around) * min(1.0, length / _GOOD)


def _pause(before: Phrase, after: Phrase) -> int:
    return after.speech[0] - before.speech[1]
