"""Decoded sound as it passes between the processes of this service: 16 kHz, mono, signed 16 bits."""

import struct

import msgspec

RATE = 16_000
SAMPLE_BYTES = 2

_LENGTHS = struct.Struct(">II")
PREFIX_BYTES = _LENGTHS.size


class Sound(msgspec.Struct, frozen=True):
    """The decoded sound of a clip; `cautions` are sentences about missing parts."""

    samples: bytes
    cautions: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return len(self.samples) / (RATE * SAMPLE_BYTES)


class Decoded(msgspec.Struct, frozen=True, tag="decoded"):
    """A decoder's answer; the samples follow it."""

    cautions: tuple[str, ...] = ()


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """A decoder's answer to a clip without usable sound."""

    reason: str
    hint: str


def pack(head: bytes, body: bytes = b"") -> list[bytes]:
    """Encodes one transfer through a pipe: both lengths, then both parts."""
    return [_LENGTHS.pack(len(head), len(body)), head, body]


def lengths(prefix: bytes) -> tuple[int, int]:
    """Returns the lengths of head and body from the first PREFIX_BYTES of a transfer."""
    head, body = _LENGTHS.unpack(prefix)
    return head, body
