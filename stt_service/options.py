"""The options that the supervisor writes to this service's standard input, and the reason of each limit."""

from typing import Literal

import msgspec

EngineName = Literal["faster-whisper", "openai"]


class Limits(msgspec.Struct, frozen=True):
    """Limits of one clip; a clip above one of them is refused before it costs anything."""

    # The limit of hosted services as well.
    bytes_max: int = 25 * 1024 * 1024
    # Decoded sound is held in memory: 29 MB for a quarter of an hour.
    seconds_max: float = 900.0
    # Telephones use 8 kHz. A file that declares a lower rate makes the resampler fill gigabytes.
    rate_min: int = 4_000
    rate_max: int = 96_000
    channels_max: int = 8
    # A quarter of an hour of audio decodes in two seconds on a busy core.
    decode_seconds_max: float = 20.0
    # In addition to the idle decoder: the clip, its samples, and the memory of a codec.
    decode_memory_bytes: int = 384 * 1024 * 1024


class Remote(msgspec.Struct, frozen=True):
    """An OpenAI-compatible server; `base_url` ends before `/audio/transcriptions`."""

    base_url: str
    model: str
    api_key: str = ""

    def __repr__(self) -> str:
        """Leaves the key out: a repr ends up in logs."""
        return f"Remote(base_url={self.base_url!r}, model={self.model!r})"


class Options(msgspec.Struct, frozen=True):
    """`engines` are tried in this order: when one cannot work, the service uses the next."""

    engines: tuple[EngineName, ...] = ("faster-whisper",)
    # The folder that `hermesctl models pull` fills, and the weights in it.
    models: str = ""
    model: str = "tiny.en"
    remote: Remote | None = None
    # None: the model detects the language, if it knows more than one.
    language: str | None = None
    prompt: str = ""
    hotwords: str = ""
    # After this long without a clip the weights are unloaded; 0 keeps them.
    idle_seconds: float = 0.0
    # 0: as many as this process has CPUs, at most four; more threads than cores only wait for each other.
    threads: int = 0
    # Limit of the service including the model; 0 sets none. tiny.en reserves 1.4 GB and touches a quarter of
    # it.
    memory_bytes_max: int = 4 * 1024**3
    limits: Limits = Limits()
