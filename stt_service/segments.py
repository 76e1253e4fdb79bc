"""Speech cut into parts for the model, in pauses, without long silence.

A part is so short that its sound and the margin fill the model's shortest window. In a longer part the fast
decoder leaves sentences out, or loses count when something is said several times; the text is fluent all the
same and the model as sure of it as ever. A part is no shorter than it must be: each costs a window, and
context helps to understand it.

The rule: a clip is cut only in pauses of two seconds and more, into as few parts as possible. A stretch of
speech that is longer than a part and has no such pause stays whole, and the library's own long-form decoding
hears it: sentences that follow each other closely are understood by what was said before them. Only when that
decoding fails is the stretch cut all the same, in its longest pauses.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from stt_service.sound import RATE, Sound
from stt_service.whisper import Samples

PART_SECONDS_MAX = 12.0
# Kept before and after speech: a soft first or last sound is not found as speech.
_PADDING = int(0.4 * RATE)
# A shorter pause is kept whole, for it may hold a word that was not found as speech, and is no place to cut:
# people pause for a second in the middle of a sentence and for less between two. A longer one is silence.
_PAUSE_KEPT = 2 * RATE
# The words of a shorter part lack the context of their neighbours.
_GOOD = 3 * RATE


@dataclass(frozen=True)
class Phrase:
    """Speech between two pauses: where somebody speaks, and the wider part of the clip that is heard."""

    speech: tuple[int, int]
    heard: tuple[int, int]


Stretch = tuple[Phrase, ...]


@dataclass(frozen=True)
class Segment:
    """Phrases to be heard at once."""

    clip: Samples
    phrases: tuple[Phrase, ...]
    # Cut from a stretch that was not understood as a whole.
    is_doubtful: bool = False

    @property
    def samples(self) -> Samples:
        return np.concatenate([self.clip[slice(*phrase.heard)] for phrase in self.phrases])

    @property
    def is_long(self) -> bool:
        """Whether it is more than a part: there was no pause to cut it in."""
        return not self.is_doubtful and _length(self.phrases) > PART_SECONDS_MAX * RATE

    @property
    def spoken_seconds(self) -> float:
        return sum(phrase.speech[1] - phrase.speech[0] for phrase in self.phrases) / RATE

    @property
    def from_seconds(self) -> float:
        return self.phrases[0].heard[0] / RATE

    @property
    def until_seconds(self) -> float:
        """When it is done, the clip is done up to here."""
        return self.phrases[-1].heard[1] / RATE

    def parts(self) -> list["Segment"]:
        """Cut all the same, in the longest pauses there are."""
        found = _segments(self.clip, [(phrase,) for phrase in self.phrases])
        return [replace(part, is_doubtful=True) for part in found]


FindSpeech = Callable[[Samples, float], list[tuple[int, int]]]


def cut(sound: Sound, find_speech: FindSpeech) -> list[Segment]:
    """The segments of a clip, none when nobody speaks."""
    clip = np.frombuffer(sound.samples, np.int16).astype(np.float32) / 32768.0
    spoken = find_speech(clip, PART_SECONDS_MAX - _PAUSE_KEPT / RATE)
    return _segments(clip, _stretches(_widened(spoken, len(clip))))


def _widened(spoken: list[tuple[int, int]], end: int) -> tuple[Phrase, ...]:
    """With what is around: half of a short pause each, or the padding."""
    if not spoken:
        return ()
    phrases = []
    before = -_PAUSE_KEPT - 1
    starts_after = [*(first for first, _ in spoken[1:]), end + _PAUSE_KEPT + 1]
    for (first, last), after in zip(spoken, starts_after, strict=True):
        start = (before + first) // 2 if first - before <= _PAUSE_KEPT else first - _PADDING
        stop = (last + after) // 2 if after - last <= _PAUSE_KEPT else last + _PADDING
        phrases.append(Phrase((first, last), (max(start, 0), min(stop, end))))
        before = last
    return tuple(phrases)


def _stretches(phrases: tuple[Phrase, ...]) -> list[Stretch]:
    """Phrases without a real pause between them."""
    found: list[Stretch] = []
    for phrase in phrases:
        if found and _pause(found[-1], (phrase,)) < _PAUSE_KEPT:
            found[-1] = (*found[-1], phrase)
        else:
            found.append((phrase,))
    return found


def _segments(clip: Samples, stretches: list[Stretch]) -> list[Segment]:
    """As few as possible, and among these ways the one with the best cuts."""
    # Of the first n stretches: (number of parts, minus the worth of the cuts, where the last part begins).
    best = [(0, 0.0, 0)]
    for end in range(1, len(stretches) + 1):
        ways = []
        length = 0
        for first in reversed(range(end)):
            length += _length(stretches[first])
            if length > PART_SECONDS_MAX * RATE and first < end - 1:
                break
            parts, worth, _ = best[first]
            ways.append((parts + 1, worth - _worth(stretches, first, end, length), first))
        best.append(min(ways))
    found: list[Segment] = []
    end = len(stretches)
    while end:
        first = best[end][2]
        found.insert(0, Segment(clip, tuple(chain.from_iterable(stretches[first:end]))))
        end = first
    return found


def _worth(stretches: list[Stretch], first: int, end: int, length: int) -> float:
    """Of the cuts around a part: long pauses, unless the part becomes too short."""
    around = [
        _pause(stretches[place - 1], stretches[place]) for place in (first, end) if 0 < place < len(stretches)
    ]
    return sum(min(pause, _PAUSE_KEPT) for pause in around) * min(1.0, length / _GOOD)


def _length(phrases: Stretch) -> int:
    return sum(phrase.heard[1] - phrase.heard[0] for phrase in phrases)


def _pause(before: Stretch, after: Stretch) -> int:
    return after[0].speech[0] - before[-1].speech[1]
