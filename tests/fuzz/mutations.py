"""Frames with some bytes changed, by a seeded hand: most are unreadable, some mean something else."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

Mutate = Callable[[Random, bytes], bytes]


def mutated(random: Random, frames: Sequence[bytes]) -> Iterator[bytes]:
    """Changed frames without end."""
    while True:
        frame = random.choice(frames)
        for _ in range(random.randint(1, 3)):
            frame = random.choice(_MUTATIONS)(random, frame)
        yield frame


def _flip(random: Random, frame: bytes) -> bytes:
    at = random.randrange(len(frame)) if frame else 0
    return frame[:at] + bytes([frame[at] ^ 1 << random.randrange(8)]) + frame[at + 1 :] if frame else b"\0"


def _put(random: Random, frame: bytes) -> bytes:
    at = random.randint(0, len(frame))
    return frame[:at] + random.randbytes(random.randint(1, 8)) + frame[at:]


def _take(random: Random, frame: bytes) -> bytes:
    at = random.randint(0, len(frame))
    return frame[:at] + frame[at + random.randint(1, 8) :]


def _end(random: Random, frame: bytes) -> bytes:
    return frame[: random.randint(0, len(frame))]


def _repeat(random: Random, frame: bytes) -> bytes:
    at = random.randint(0, len(frame))
    return frame[:at] + frame[at : at + 16] * random.randint(2, 50) + frame[at:]


def _nest(random: Random, frame: bytes) -> bytes:
    """MessagePack's marks of lists and maps, many in a row."""
    at = random.randint(0, len(frame))
    return frame[:at] + random.choice((b"\x91", b"\x81", b"\xdd\xff\xff\xff\xff")) * 2000 + frame[at:]


_MUTATIONS: tuple[Mutate, ...] = (_flip, _flip, _put, _take, _end, _repeat, _nest)
