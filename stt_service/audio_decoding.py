"""Decodes the bytes of a clip to 16 kHz mono samples, with limits before and during decoding.

This code runs in the decoder process only, so a file that breaks FFmpeg breaks that process alone.
"""

import io
from fractions import Fraction

import av
import av.audio.resampler
import av.error

from stt_service.containers import ACCEPTED, Container, cut_short, sniff
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from stt_service.sound import RATE, SAMPLE_BYTES, Sound

# FFmpeg may use these decoders for a clip, and no protocol: `none` is the name of no protocol. The option is
# for the reader of the container; the decoder of its sound is made without it, and compared by its name.
_CODECS = (
    "opus", "libopus", "vorbis", "libvorbis", "flac", "alac", "mp3", "mp3float", "mp2", "mp2float", "aac",
    "libspeex", "speex", "amrnb", "amrwb", "libopencore_amrnb", "libopencore_amrwb", "gsm", "gsm_ms",
    "pcm_u8", "pcm_s8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be",
    "pcm_f32le", "pcm_f64le", "pcm_alaw", "pcm_mulaw", "adpcm_ms", "adpcm_ima_wav",
)  # fmt: skip
# A clip that is shorter than declared by less than this has lost padding or rounding, not audio.
_SHORTER_SECONDS = 0.5
_SHORTER_SHARE = 0.05
_SHORTER_SHARE_OF_A_GUESS = 0.5


def decode(content: bytes, limits: Limits) -> Sound:
    """Returns the sound of a clip, or raises CannotTranscribe with the reason."""
    kind = sniff(content)
    options = {
        "protocol_whitelist": "none",
        "format_whitelist": ",".join(
            sorted({kind.name, *av.ContainerFormat(kind.name, "r").name.split(",")})
        ),
        "codec_whitelist": ",".join(_CODECS),
    }
    try:
        with av.open(
            io.BytesIO(content), "r", format=kind.name, options=options, metadata_errors="ignore"
        ) as container:
            sound = _decode_container(container, kind, limits)
    except MemoryError:
        raise CannotTranscribe(
            "the clip needs more memory to decode than a clip may have", ACCEPTED
        ) from None
    except av.error.FFmpegError as error:
        raise CannotTranscribe(
            f"the {kind.name} file cannot be read: {error.strerror}", "record it again, or convert it"
        ) from None
    return Sound(sound.samples, (*sound.cautions, *cut_short(content)))


def _decode_container(container: av.container.InputContainer, kind: Container, limits: Limits) -> Sound:
    stream = next(iter(container.streams.audio), None)
    if stream is None:
        raise CannotTranscribe("the file holds no sound, only other streams", ACCEPTED)
    context = stream.codec_context
    if context is None or not context.sample_rate:
        raise CannotTranscribe(
            f"the {kind.name} file cannot be read: its sound is of an unknown kind", ACCEPTED
        )
    if context.codec.name not in _CODECS:
        raise CannotTranscribe(f"sound of the kind {context.codec.name} is not taken", ACCEPTED)
    _check_form(context.sample_rate, context.layout.nb_channels, limits)
    declared = _declared_seconds(container, stream)
    if kind.states_length and declared > limits.seconds_max:
        raise _too_long(f"says it lasts {declared:,.0f} s", limits)
    context.thread_count = 1
    buffer = _SampleBuffer(limits)
    damaged = 0
    for packet in container.demux(stream):
        try:
            for frame in packet.decode():
                buffer.add(frame)
        except MemoryError:
            raise
        except av.error.FFmpegError:
            # Decoders give many errors for a damaged packet, some of them without a name.
            damaged += 1
    samples = buffer.finished()
    decoded = len(samples) / (RATE * SAMPLE_BYTES)
    share = _SHORTER_SHARE if kind.states_length else _SHORTER_SHARE_OF_A_GUESS
    cautions = []
    if damaged:
        cautions.append(f"damaged parts of the file were left out: {damaged}")
    if decoded < declared - max(_SHORTER_SECONDS, declared * share):
        cautions.append(f"the file should last {declared:.1f} s, only {decoded:.1f} s could be decoded")
    return Sound(samples, tuple(cautions))


class _SampleBuffer:
    """Collects frames as samples of one format; a change of the frames' format replaces the resampler."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes_max = int(limits.seconds_max * RATE) * SAMPLE_BYTES
        self._samples = bytearray()
        self._form: tuple[str, str, int] | None = None
        self._resampler: av.audio.resampler.AudioResampler | None = None

    def add(self, frame: av.AudioFrame) -> None:
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        if form != self._form:
            _check_form(frame.sample_rate, frame.layout.nb_channels, self._limits)
            self._flush()
            self._form = form
            self._resampler = av.audio.resampler.AudioResampler(format="s16", layout="mono", rate=RATE)
        assert self._resampler is not None
        # Timestamps may jump by hours, so the length is counted in samples only.
        frame.pts = None
        for resampled in self._resampler.resample(frame):
            self._append(resampled)

    def finished(self) -> bytes:
        self._flush()
        if not self._samples:
            raise CannotTranscribe(
                "no sound could be decoded from the file", "record it again, or convert it"
            )
        return bytes(self._samples)

    def _flush(self) -> None:
        if self._resampler is not None:
            for resampled in self._resampler.resample(None):
                self._append(resampled)
            self._resampler = None

    def _append(self, frame: av.AudioFrame) -> None:
        # A plane may have padding behind its samples.
        self._samples += memoryview(frame.planes[0])[: frame.samples * SAMPLE_BYTES]
        if len(self._samples) > self._bytes_max:
            raise _too_long("is longer than it may be", self._limits)


def _check_form(rate: int, channels: int, limits: Limits) -> None:
    if not limits.rate_min <= rate <= limits.rate_max:
        raise CannotTranscribe(
            f"the clip has {rate:,} samples a second, {limits.rate_min:,} to {limits.rate_max:,} are taken",
            "record at 16,000 or 48,000 samples a second",
        )
    if not 1 <= channels <= limits.channels_max:
        raise CannotTranscribe(
            f"the clip has {channels} channels, 1 to {limits.channels_max} are taken", "record in mono"
        )


def _declared_seconds(container: av.container.InputContainer, stream: av.AudioStream) -> float:
    """Returns 0 when the file declares no length."""
    if stream.duration is not None and stream.time_base is not None:
        return float(Fraction(stream.duration) * stream.time_base)
    return (container.duration or 0) / av.time_base


def _too_long(what: str, limits: Limits) -> CannotTranscribe:
    return CannotTranscribe(
        f"the clip {what}, the limit is {limits.seconds_max:,.0f} s", "send shorter parts"
    )
