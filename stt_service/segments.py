"""Cuts a clip into parts for the model, at pauses, without long silence.

A part is so short that its sound and the margin fill the model's shortest window. In a longer part the fast
decoder leaves sentences out, or loses count when a phrase is repeated; the text is fluent all the same and
its confidence as high as ever. A part is no shorter than necessary: each costs a window, and context improves
its transcript.

The rule: a clip is cut only at pauses of two seconds and more, into as few parts as possible. A stretch that
is longer than a part and has no such pause stays whole, and the library's own long-form decoding transcribes
it, which uses the preceding sentences as context. If that decoding fails, the stretch is cut at its longest
pauses.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from stt_service.sound import RATE, Sound
from stt_service.whisper import Samples

PART_SECONDS_MAX = 12.0
# Kept before and after voiced audio: a soft first or last sound is not detected as voice.
_PADDING = int(0.4 * RATE)
# A shorter pause is kept whole: it may contain a word that was not detected as voice, and it is no place to
# cut, because people pause for a second within a sentence and for less between two. A longer one is silence.
_PAUSE_KEPT = 2 * RATE
# The words of a shorter part lack the context of their neighbours.
_GOOD = 3 * RATE


@dataclass(frozen=True)
class Phrase:
    """Voiced audio between two pauses, and the wider part of the clip that the model gets."""

    voiced: tuple[int, int]
    padded: tuple[int, int]


Stretch = tuple[Phrase, ...]


@dataclass(frozen=True)
class Segment:
    """Phrases that the model transcribes in one call."""

    clip: Samples
    phrases: tuple[Phrase, ...]
    # Cut from a stretch whose transcription as a whole failed.
    is_doubtful: bool = False

    @property
    def samples(self) -> Samples:
        return np.concatenate([self.clip[slice(*phrase.padded)] for phrase in self.phrases])

    @property
    def is_long(self) -> bool:
        """True when the segment is longer than a part, because it has no pause to cut at."""
        return not self.is_doubtful and _length(self.phrases) > PART_SECONDS_MAX * RATE

    @property
    def voiced_seconds(self) -> float:
        return sum(phrase.voiced[1] - phrase.voiced[0] for phrase in self.phrases) / RATE

    @property
    def from_seconds(self) -> float:
        return self.phrases[0].padded[0] / RATE

    @property
    def until_seconds(self) -> float:
        """The end of this segment in the clip."""
        return self.phrases[-1].padded[1] / RATE

    def parts(self) -> list["Segment"]:
        """Cuts the segment at its longest pauses."""
        found = _segments(self.clip, [(phrase,) for phrase in self.phrases])
        return [replace(part, is_doubtful=True) for part in found]


FindVoice = Callable[[Samples, float], list[tuple[int, int]]]


def cut(sound: Sound, find_voice: FindVoice) -> list[Segment]:
    """Returns the segments of a clip; none when no voice is detected."""
    clip = np.frombuffer(sound.samples, np.int16).astype(np.float32) / 32768.0
    voiced = find_voice(clip, PART_SECONDS_MAX - _PAUSE_KEPT / RATE)
    return _segments(clip, _stretches(_widened(voiced, len(clip))))


def _widened(voiced: list[tuple[int, int]], end: int) -> tuple[Phrase, ...]:
    """Adds half of a short pause, or the padding, on each side of a phrase."""
    if not voiced:
        return ()
    phrases = []
    before = -_PAUSE_KEPT - 1
    starts_after = [*(first for first, _ in voiced[1:]), end + _PAUSE_KEPT + 1]
    for (first, last), after in zip(voiced, starts_after, strict=True):
        start = (before + first) // 2 if first - before <= _PAUSE_KEPT else first - _PADDING
        stop = (last + after) // 2 if after - last <= _PAUSE_KEPT else last + _PADDING
        phrases.append(Phrase((first, last), (max(start, 0), min(stop, end))))
        before = last
    return tuple(phrases)


def _stretches(phrases: tuple[Phrase, ...]) -> list[Stretch]:
    """Groups phrases that have no real pause between them."""
    found: list[Stretch] = []
    for phrase in phrases:
        if found and _pause(found[-1], (phrase,)) < _PAUSE_KEPT:
            found[-1] = (*found[-1], phrase)
        else:
            found.append((phrase,))
    return found


def _segments(clip: Samples, stretches: list[Stretch]) -> list[Segment]:
    """Returns as few segments as possible, and among those ways the one with the best cuts."""
    # For the first n stretches: (number of parts, negative score of the cuts, first stretch of the last
    # part).
    best = [(0, 0.0, 0)]
    for end in range(1, len(stretches) + 1):
        ways = []
        length = 0
        for first in reversed(range(end)):
            length += _length(stretches[first])
            if length > PART_SECONDS_MAX * RATE and first < end - 1:
                break
            parts, score, _ = best[first]
            ways.append((parts + 1, score - _cut_score(stretches, first, end, length), first))
        best.append(min(ways))
    found: list[Segment] = []
    end = len(stretches)
    while end:
        first = best[end][2]
        found.insert(0, Segment(clip, tuple(chain.from_iterable(stretches[first:end]))))
        end = first
    return found


def _cut_score(stretches: list[Stretch], first: int, end: int, length: int) -> float:
    """Scores the cuts around a part: the sum of the pauses, less when the part is too short."""
    around = [
        _pause(stretches[place - 1], stretches[place]) for place in (first, end) if 0 < place < len(stretches)
    ]
    return sum(min(pause, _PAUSE_KEPT) for pause in around) * min(1.0, length / _GOOD)


def _length(phrases: Stretch) -> int:
    return sum(phrase.padded[1] - phrase.padded[0] for phrase in phrases)


def _pause(before: Stretch, after: Stretch) -> int:
    return after[0].voiced[0] - before[-1].voiced[1]
