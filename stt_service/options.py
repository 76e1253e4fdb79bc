"""What the supervisor hands to this service on standard input; every limit has its reason beside it."""

from typing import Literal

import msgspec

EngineName = Literal["faster-whisper", "openai"]


class Limits(msgspec.Struct, frozen=True):
    """Of one clip; what is over is refused by name before it costs anything."""

    # What hosted services take as well.
    bytes_max: int = 25 * 1024 * 1024
    # Decoded sound is held in memory: 29 MB for a quarter of an hour.
    seconds_max: float = 900.0
    # Telephones have 8 kHz. A lower claim is a lie that makes the resampler fill gigabytes.
    rate_min: int = 4_000
    rate_max: int = 96_000
    channels_max: int = 8
    # A quarter of an hour decodes in two seconds on a busy core.
    decode_seconds_max: float = 20.0
    # Beyond the decoder at rest: the clip, its samples, and what a codec needs.
    decode_memory_bytes: int = 384 * 1024 * 1024


class Remote(msgspec.Struct, frozen=True):
    """An OpenAI-compatible server; `base_url` ends before `/audio/transcriptions`."""

    base_url: str
    model: str
    api_key: str = ""

    def __repr__(self) -> str:
        """Without the key: a repr ends up in logs."""
        return f"Remote(base_url={self.base_url!r}, model={self.model!r})"


class Options(msgspec.Struct, frozen=True):
    """`engines` in the order they are tried: the next one is asked when one cannot work."""

    engines: tuple[EngineName, ...] = ("faster-whisper",)
    # The folder that `hermesctl models pull` fills, and the weights in it.
    models: str = ""
    model: str = "tiny.en"
    remote: Remote | None = None
    # None: told by the model, where it knows more than one.
    language: str | None = None
    prompt: str = ""
    hotwords: str = ""
    # The weights leave memory after this long without a clip; 0 keeps them.
    idle_seconds: float = 0.0
    # 0: as many as this process has CPUs, at most four; more threads than cores only wait for each other.
    threads: int = 0
    # Of the service itself, model and all; 0 sets none. tiny.en reserves 1.4 GB and touches a quarter of it.
    memory_bytes_max: int = 4 * 1024**3
    limits: Limits = Limits()
