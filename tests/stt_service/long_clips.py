"""Clips of ten to sixty seconds with their words: real repeats, pauses, counting, music before speech.

All are put together by code from the recorded clips of the tests.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from tests.stt_service.sounds import SAID, Samples, file_of, music, samples_of, silence

COUNTED = "one two three four five six seven eight nine ten"


class LongClip(NamedTuple):
    """A file, and the words in it."""

    content: bytes
    said: str


def repeated(name: str, times: int, pause_seconds: float = 0.0) -> LongClip:
    """The same recording again and again."""
    return _joined([name] * times, pause_seconds)


def with_pauses(names: tuple[str, ...], pause_seconds: float) -> LongClip:
    return _joined(list(names), pause_seconds)


def counted(times: int, pause_seconds: float = 0.0) -> LongClip:
    """From one to ten, and again."""
    parts = [part for _ in range(times) for part in (samples_of("count_to_ten"), silence(pause_seconds))]
    return LongClip(file_of(np.concatenate(parts), "ogg"), " ".join([COUNTED] * times))


def after_music(name: str, seconds: float) -> LongClip:
    samples = np.concatenate([(music(seconds) * 0.7).astype(np.int16), silence(0.3), samples_of(name)])
    return LongClip(file_of(samples, "ogg"), SAID[name])


@cache
def two_windows() -> LongClip:
    """Two speakers, forty seconds: more than the model hears at once, so it takes the long lane."""
    return _joined(list(SAID), 0.7)


# By name, made when they are needed.
LONG_CLIPS: dict[str, Callable[[], LongClip]] = {
    "a sentence twice, 22 s": lambda: repeated("ask_not", 2),
    "the same five times, 55 s": lambda: repeated("ask_not", 5),
    "the same three times, 2 s apart": lambda: repeated("ask_not", 3, 2.0),
    "a short one five times, 16 s": lambda: repeated("amiable_himself", 5),
    "a mumbled one four times, 21 s": lambda: repeated("cold_hearted", 4),
    "two sentences, 5 s apart": lambda: with_pauses(("leisure", "cold_hearted"), 5.0),
    "three sentences, 5 s apart": lambda: with_pauses(("ask_not", "more_amiable", "young_man"), 5.0),
    "one to ten, three times": lambda: counted(3, 0.5),
    "speech after 10 s of music": lambda: after_music("leisure", 10.0),
    "five sentences, 26 s": lambda: _joined([name for name in SAID if name != "ask_not"], 0.3),
    "a minute of two speakers": lambda: _joined([*SAID, *SAID], 0.7),
}


def _joined(names: list[str], pause_seconds: float) -> LongClip:
    parts: list[Samples] = []
    for name in names:
        parts += [samples_of(name), silence(pause_seconds)]
    return LongClip(file_of(np.concatenate(parts), "ogg"), " ".join(SAID[name] for name in names))
