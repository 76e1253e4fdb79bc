"""Decoding in the test process: how long each container lasts, what is missing of it, and what is refused."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import av
import av.error
import numpy as np
import pytest

from stt_service.audio_decoding import _decode_container, decode
from stt_service.containers import Container
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from stt_service.sound import RATE
from tests.stt_service.sounds import KINDS, file_of, picture_file, tone

LIMITS = Limits()


def loudness(samples: bytes) -> float:
    return float(np.abs(np.frombuffer(samples, np.int16).astype(np.float32)).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_gives_its_sound_whole(kind: str) -> None:
    sound = decode(file_of(tone(3), kind), LIMITS)
    assert sound.seconds == pytest.approx(3.0, abs=0.2)
    assert sound.cautions == ()
    assert loudness(sound.samples) == pytest.approx(loudness(tone(3).tobytes()), rel=0.1)


def test_a_change_of_the_format_in_the_middle_loses_nothing() -> None:
    content = file_of(tone(2), "aac", rate=22_050) + file_of(tone(2), "aac", "stereo", 44_100)
    sound = decode(content, LIMITS)
    assert sound.seconds == pytest.approx(4.0, abs=0.3)
    with pytest.raises(CannotTranscribe, match="has 2 channels, 1 to 1 are taken"):
        decode(content, Limits(channels_max=1))
    with pytest.raises(CannotTranscribe, match="has 44,100 samples a second, 4,000 to 22,050 are taken"):
        decode(content, Limits(rate_max=22_050))


def test_the_bounds_of_a_form_are_within() -> None:
    content = file_of(tone(1), "wav", "stereo", 16_000)
    assert decode(content, Limits(rate_min=16_000, rate_max=16_000, channels_max=2)).seconds == 1.0
    with pytest.raises(CannotTranscribe, match="16,001 to 96,000"):
        decode(content, Limits(rate_min=16_001))


def test_a_clip_that_is_too_long_is_refused_by_what_it_says_or_by_what_it_has() -> None:
    assert decode(file_of(tone(2), "wav"), Limits(seconds_max=2.0)).seconds == 2.0
    with pytest.raises(CannotTranscribe, match="the clip says it lasts 2 s, the limit is 1 s"):
        decode(file_of(tone(2), "wav"), Limits(seconds_max=1.0))
    with pytest.raises(CannotTranscribe, match="the clip is longer than it may be, the limit is 1 s"):
        decode(file_of(tone(2), "aac"), Limits(seconds_max=1.0))


@pytest.mark.parametrize("kind", ["webm", "mp3"])
def test_what_a_file_should_have_and_has_not_is_a_caution(kind: str) -> None:
    whole = file_of(tone(4), kind)
    sound = decode(whole[: len(whole) // 2], LIMITS)
    assert sound.seconds == pytest.approx(2.0, abs=0.2)
    assert sound.cautions == (f"the file should last 4.0 s, only {sound.seconds:.1f} s could be decoded",)
    assert decode(whole[: len(whole) * 19 // 20], LIMITS).cautions == (), "padding may be missing"


@pytest.mark.parametrize(("kind", "damaged_bytes"), [("mp3", 50), ("m4a", 400), ("aac", 400)])
def test_damaged_parts_are_left_out_with_a_caution(kind: str, damaged_bytes: int) -> None:
    """FFmpeg has no name for the error that damaged AAC gives."""
    content = bytearray(file_of(tone(4), kind))
    middle = len(content) // 2
    content[middle : middle + damaged_bytes] = b"\xff" * damaged_bytes
    sound = decode(bytes(content), LIMITS)
    assert any(each.startswith("damaged parts of the file were left out: ") for each in sound.cautions)
    assert 1.5 < sound.seconds < 4.1


def test_the_cautions_of_the_container_are_added() -> None:
    whole = file_of(tone(4), "wav")
    assert decode(whole[: len(whole) // 2], LIMITS).cautions == ("the end of the file is missing",)


@pytest.mark.parametrize(("container", "codec"), [("wav", "adpcm_yamaha"), ("matroska", "ac3")])
def test_sound_that_is_not_taken_is_refused_by_the_name_of_its_codec(
    container: str, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FFmpeg has hundreds of decoders; a clip may choose among few."""
    monkeypatch.setitem(KINDS, "odd", (container, codec, 44_100))
    with pytest.raises(CannotTranscribe, match=f"sound of the kind {codec} is not taken"):
        decode(file_of(tone(1.0), "odd"), LIMITS)


def test_a_file_without_sound_is_refused() -> None:
    with pytest.raises(CannotTranscribe, match="holds no sound, only other streams"):
        decode(picture_file("mp4", "mpeg4"), LIMITS)
    with pytest.raises(CannotTranscribe, match="the wav file cannot be read: Invalid data"):
        decode(file_of(tone(0.1), "wav")[:44], LIMITS)


CONTEXT = SimpleNamespace(
    codec=SimpleNamespace(name="opus"), sample_rate=RATE, layout=SimpleNamespace(nb_channels=1)
)


def test_a_lack_of_memory_is_no_damage_of_the_file() -> None:
    def decode() -> list[av.AudioFrame]:
        raise av.error.MemoryError(12, "no memory")

    stream = SimpleNamespace(
        codec_context=CONTEXT,
        duration=None,
        time_base=None,
    )
    container = SimpleNamespace(
        streams=SimpleNamespace(audio=[stream]),
        duration=None,
        demux=lambda stream: [SimpleNamespace(decode=decode)],
    )
    with pytest.raises(MemoryError):
        _decode_container(cast("Any", container), Container("wav", "clip.wav", "audio/wav"), LIMITS)


def lasting(seconds: float, declared: float) -> Any:
    """A container with so much sound, which declares another length."""
    frame = av.AudioFrame.from_ndarray(tone(seconds).reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = RATE
    stream = SimpleNamespace(
        codec_context=CONTEXT,
        duration=round(declared * 1000),
        time_base=Fraction(1, 1000),
    )
    return SimpleNamespace(
        streams=SimpleNamespace(audio=[stream]),
        demux=lambda stream: [SimpleNamespace(decode=lambda: [frame])],
    )


@pytest.mark.parametrize(
    ("seconds", "states_length", "padding", "loss"),
    # Of what is declared: half a second and 5 %, or 50 % of a guess from the first frames.
    [(4.0, True, 4.4, 4.6), (20.0, True, 20.9, 21.5), (4.0, False, 7.0, 9.0)],
)
def test_what_is_missing_is_lost_beyond_padding_and_the_error_of_a_guess(
    seconds: float, states_length: bool, padding: float, loss: float
) -> None:
    kind = Container("any", "clip.any", "audio/any", states_length)
    assert _decode_container(lasting(seconds, padding), kind, LIMITS).cautions == ()
    (caution,) = _decode_container(lasting(seconds, loss), kind, LIMITS).cautions
    assert caution == f"the file should last {loss:.1f} s, only {seconds:.1f} s could be decoded"


def test_a_title_in_another_encoding_than_utf_8_does_not_matter() -> None:
    content = file_of(tone(1), "wav")
    title = b"LIST\x0e\0\0\0INFOINAM\x02\0\0\0\xe9\0"
    content = content[:4] + (len(content) + len(title) - 8).to_bytes(4, "little") + content[8:] + title
    assert decode(content, LIMITS).seconds == 1.0
