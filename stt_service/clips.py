"""Bytes of a clip to samples, 16 kHz mono: limits before decoding, a cap while decoding, no way to the outside.

Runs in the decoder's process only: whatever a file does to FFmpeg, it does there.
"""

import io
from collections.abc import Iterator
from fractions import Fraction

import av
import av.audio.resampler
import av.error

from stt_service.containers import ACCEPTED, Container, sniff
from stt_service.errors import CannotHear
from stt_service.options import Limits
from stt_service.sound import RATE, SAMPLE_BYTES, Sound

# What FFmpeg may use for a clip: these decoders, and no protocol at all (the name belongs to none).
_CODECS = (
    "opus", "libopus", "vorbis", "libvorbis", "flac", "alac", "mp3", "mp3float", "mp2", "mp2float", "aac",
    "libspeex", "speex", "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s32le", "pcm_f32le",
    "pcm_f64le", "pcm_alaw", "pcm_mulaw", "adpcm_ms", "adpcm_ima_wav", "gsm", "gsm_ms",
)  # fmt: skip
# Below these a shorter end is padding or rounding, not a loss.
_SHORTER_SECONDS = 0.5
_SHORTER_SHARE = 0.05


def decode(content: bytes, limits: Limits) -> Sound:
    """The sound of a clip, or CannotHear with the reason."""
    kind = sniff(content)
    options = {
        "protocol_whitelist": "none",
        "format_whitelist": ",".join(sorted({kind.name, *av.ContainerFormat(kind.name, "r").name.split(",")})),
        "codec_whitelist": ",".join(_CODECS),
    }
    try:
        with av.open(
            io.BytesIO(content), format=kind.name, options=options, metadata_errors="ignore"
        ) as container:
            return _decode_container(container, kind, limits)
    except MemoryError:
        raise CannotHear("the clip needs more memory to decode than a clip may have", ACCEPTED) from None
    except av.error.FFmpegError as error:
        raise CannotHear(
            f"the {kind.name} file cannot be read: {error.strerror}", "record it again, or convert it"
        ) from None


def _decode_container(container: av.container.InputContainer, kind: Container, limits: Limits) -> Sound:
    stream = next(iter(container.streams.audio), None)
    if stream is None:
        raise CannotHear("the file holds no sound, only other streams", ACCEPTED)
    context = stream.codec_context
    _check_form(context.sample_rate, context.layout.nb_channels, limits)
    declared = _declared_seconds(container, stream) if kind.tells_length else None
    if declared is not None and declared > limits.seconds_max:
        raise _too_long(f"says it lasts {declared:,.0f} s", limits)
    context.thread_count = 1
    tape = _Tape(limits)
    damaged = 0
    for packet in container.demux(stream):
        try:
            for frame in packet.decode():
                tape.take(frame)
        except (av.error.InvalidDataError, av.error.EOFError):
            damaged += 1
    samples = tape.finished()
    return Sound(samples, tuple(_cautions(damaged, declared, len(samples) / (RATE * SAMPLE_BYTES))))


def _cautions(damaged: int, declared: float | None, decoded: float) -> Iterator[str]:
    if damaged:
        yield f"{damaged} damaged parts of the file were left out"
    if declared is not None and decoded < declared - max(_SHORTER_SECONDS, declared * _SHORTER_SHARE):
        yield f"the file says it lasts {declared:.1f} s, only {decoded:.1f} s could be decoded"


class _Tape:
    """Collects frames as samples of one form; the resampler is made anew whenever the frames change theirs."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes_max = int(limits.seconds_max * RATE) * SAMPLE_BYTES
        self._samples = bytearray()
        self._form: tuple[str, str, int] | None = None
        self._resampler: av.audio.resampler.AudioResampler | None = None

    def take(self, frame: av.AudioFrame) -> None:
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        if form != self._form:
            _check_form(frame.sample_rate, frame.layout.nb_channels, self._limits)
            self._flush()
            self._form = form
            self._resampler = av.audio.resampler.AudioResampler(format="s16", layout="mono", rate=RATE)
        assert self._resampler is not None
        # Time stamps may jump by hours; only the samples themselves count.
        frame.pts = None
        for made in self._resampler.resample(frame):
            self._append(made)

    def finished(self) -> bytes:
        self._flush()
        if not self._samples:
            raise CannotHear("no sound could be decoded from the file", "record it again, or convert it")
        return bytes(self._samples)

    def _flush(self) -> None:
        if self._resampler is not None:
            for made in self._resampler.resample(None):
                self._append(made)
            self._resampler = None

    def _append(self, frame: av.AudioFrame) -> None:
        # A plane may have padding behind its samples.
        self._samples += memoryview(frame.planes[0])[: frame.samples * SAMPLE_BYTES]
        if len(self._samples) > self._bytes_max:
            raise _too_long("is longer than it may be", self._limits)


def _check_form(rate: int, channels: int, limits: Limits) -> None:
    if not limits.rate_min <= rate <= limits.rate_max:
        raise CannotHear(
            f"the clip has {rate:,} samples a second, {limits.rate_min:,} to {limits.rate_max:,} are taken",
            "record at 16,000 or 48,000 samples a second",
        )
    if not 1 <= channels <= limits.channels_max:
        raise CannotHear(
            f"the clip has {channels} channels, 1 to {limits.channels_max} are taken", "record in mono"
        )


def _declared_seconds(container: av.container.InputContainer, stream: av.AudioStream) -> float | None:
    if stream.duration is not None and stream.time_base is not None:
        return float(Fraction(stream.duration) * stream.time_base)
    return container.duration / av.time_base if container.duration is not None else None


def _too_long(what: str, limits: Limits) -> CannotHear:
    return CannotHear(f"the clip {what}, the limit is {limits.seconds_max:,.0f} s", "send shorter parts")
