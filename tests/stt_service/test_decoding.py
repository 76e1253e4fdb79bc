"""Decoding in the test process: how long each container lasts, what is missing of it, and what is refused."""

import numpy as np
import pytest

from stt_service.audio_decoding import decode
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
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


def test_a_file_without_sound_is_refused() -> None:
    with pytest.raises(CannotTranscribe, match="holds no sound, only other streams"):
        decode(picture_file("mp4", "mpeg4"), LIMITS)
    with pytest.raises(CannotTranscribe, match="the wav file cannot be read: Invalid data"):
        decode(file_of(tone(0.1), "wav")[:44], LIMITS)
