"""Parts of the STT service without a model: clip files, decoder processes, and where a clip is cut."""

import asyncio
import os
import signal
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stt_service.clip_file import read_clip
from stt_service.decoder_pool import DecoderDied, DecoderPool, _Decoder
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from stt_service.segments import PART_SECONDS_MAX, Segment, cut
from stt_service.sound import PREFIX_BYTES, RATE, Sound, lengths, pack
from tests.stt_service.sounds import clip
from tests.waiting import soon

LIMITS = Limits()


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# --- the file


def test_a_clip_is_read_whole_and_what_is_no_clip_is_refused_without_a_descriptor_left(
    tmp_path: Path,
) -> None:
    good, empty = tmp_path / "good", tmp_path / "empty"
    good.write_bytes(b"sound")
    empty.touch()
    (tmp_path / "link").symlink_to(good)
    os.mkfifo(tmp_path / "pipe")
    before = _open_descriptors()
    assert read_clip(str(good), 5, LIMITS) == b"sound"
    assert read_clip(str(empty), 0, LIMITS) == b""
    small = msgspec.structs.replace(LIMITS, bytes_max=4)
    for name, size, limits, fault in (
        ("missing", 5, LIMITS, "cannot be opened: No such file"),
        ("link", 5, LIMITS, "cannot be opened"),
        ("pipe", 0, LIMITS, "is not a plain file"),
        ("", 0, LIMITS, "is not a plain file"),
        ("good", 6, LIMITS, "has 5 bytes instead of 6"),
        ("good", 5, small, "has 5 bytes, the limit is 4"),
    ):
        with pytest.raises(CannotTranscribe, match=fault):
            read_clip(str(tmp_path / name), size, limits)
    assert read_clip(str(good), 5, msgspec.structs.replace(LIMITS, bytes_max=5)) == b"sound"
    assert _open_descriptors() == before


def test_a_transfer_tells_its_lengths() -> None:
    prefix, head, body = pack(b"head", b"the body")
    assert len(prefix) == PREFIX_BYTES
    assert lengths(prefix) == (4, 8)
    assert (head, body) == (b"head", b"the body")
    assert Sound(bytes(RATE * 2 * 3)).seconds == 3.0


# --- decoders


def _has_ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _pids(pool: DecoderPool) -> list[int]:
    return [decoder._process.pid for decoder in pool._idle]


def test_decoders_are_used_again_replaced_when_they_die_and_ended_with_the_pool() -> None:
    spoken = clip("young_man").read_bytes()

    async def act() -> None:
        async with DecoderPool(LIMITS) as pool:
            await pool.warm_up()
            (first,) = _pids(pool)
            sound = await pool.decode(spoken)
            assert 1.0 < sound.seconds < 10.0
            with pytest.raises(CannotTranscribe):
                await pool.decode(b"this is no sound")
            assert _pids(pool) == [first]
            # One that died while it was idle costs nothing but its replacement.
            os.kill(first, signal.SIGKILL)
            assert await pool.decode(spoken) == sound
            (second,) = _pids(pool)
            assert second != first
            # Two clips at once have a decoder each, a third one waits for one of them.
            sounds = await asyncio.gather(*(pool.decode(spoken) for _ in range(3)))
            assert sounds == [sound] * 3
            pids = _pids(pool)
            assert len(pids) == 2
        for pid in pids:
            assert _has_ended(pid)

    asyncio.run(act())


def test_a_clip_that_is_given_up_ends_its_decoder_and_one_that_crashes_two_is_refused() -> None:
    spoken = clip("young_man").read_bytes()

    async def act() -> None:
        async with DecoderPool(msgspec.structs.replace(LIMITS, decode_seconds_max=0.0)) as pool:
            await pool.warm_up()
            (pid,) = _pids(pool)
            with pytest.raises(CannotTranscribe, match="could not be decoded within 0 s"):
                await pool.decode(spoken)
            assert _pids(pool) == []
            assert _has_ended(pid)
        async with DecoderPool(LIMITS) as pool:
            for _ in range(2):
                await pool.warm_up()
            for pid in _pids(pool):
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(CannotTranscribe, match="the clip crashes the decoder"):
                await pool.decode(spoken)
            assert (await pool.decode(spoken)).seconds > 1.0

    asyncio.run(act())


def test_a_clip_that_is_forgotten_while_it_is_decoded_ends_its_decoder() -> None:
    """A decoder in the middle of a clip can serve no other one."""
    spoken = clip("young_man").read_bytes()

    async def act() -> None:
        async with DecoderPool(LIMITS) as pool:
            await pool.warm_up()
            (pid,) = _pids(pool)
            os.kill(pid, signal.SIGSTOP)
            decoding = asyncio.create_task(pool.decode(spoken))
            await soon(lambda: _pids(pool) == [])
            decoding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await decoding
            assert _has_ended(pid)
            assert (await pool.decode(spoken)).seconds > 1.0
            assert pid not in _pids(pool)

    asyncio.run(act())


# --- where a clip is cut


def segments(seconds: float, *voiced: tuple[float, float]) -> list[Segment]:
    """Of a clip that has voice at these times."""
    sound = Sound(np.zeros(int(seconds * RATE), np.int16).tobytes())
    return cut(sound, lambda samples, most: [(int(a * RATE), int(b * RATE)) for a, b in voiced])


def times(found: list[Segment]) -> list[tuple[float, float]]:
    return [(segment.from_seconds, segment.until_seconds) for segment in found]


def test_a_clip_without_voice_has_no_part() -> None:
    assert segments(5.0) == []


def test_a_phrase_has_a_margin_that_ends_with_the_clip() -> None:
    assert times(segments(5.0, (2.0, 3.0))) == [(1.6, 3.4)]
    (whole,) = segments(5.0, (0.1, 4.9))
    assert times([whole]) == [(0.0, 5.0)]
    assert whole.voiced_seconds == pytest.approx(4.8)
    assert len(whole.samples) == 5 * RATE
    assert not whole.is_long


def test_a_short_pause_is_kept_and_a_long_one_is_left_out() -> None:
    (kept,) = segments(10.0, (1.0, 2.0), (3.5, 5.0))
    assert len(kept.samples) == int((5.4 - 0.6) * RATE)
    (left_out,) = segments(10.0, (1.0, 2.0), (6.0, 7.0))
    assert len(left_out.samples) == pytest.approx(2 * 1.8 * RATE, abs=2)
    assert times([left_out]) == [(0.6, 7.4)]


def test_a_clip_is_cut_at_long_pauses_into_as_few_parts_as_fit() -> None:
    found = segments(60.0, (1.0, 6.0), (9.0, 14.0), (17.0, 22.0), (25.0, 30.0))
    assert [len(segment.phrases) for segment in found] == [2, 2]
    assert all(len(segment.samples) <= PART_SECONDS_MAX * RATE for segment in found)
    assert [segment.is_long for segment in found] == [False, False]


def test_a_stretch_without_a_long_pause_stays_whole_and_is_cut_where_it_pauses_when_that_fails() -> None:
    phrases = [(1.0 + 5.0 * number, 5.0 + 5.0 * number) for number in range(4)]
    (stretch,) = segments(30.0, *phrases)
    assert stretch.is_long
    parts = stretch.parts()
    assert [len(part.phrases) for part in parts] == [2, 2]
    assert all(part.is_doubtful and not part.is_long for part in parts)
    assert sum(part.voiced_seconds for part in parts) == pytest.approx(16.0)


def test_a_decoder_that_died_at_its_start_costs_no_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    send = _Decoder._send

    async def dies_first(decoder: _Decoder, content: bytes) -> None:
        sent.append(content)
        if len(sent) == 1:
            decoder._process.kill()
            raise DecoderDied
        await send(decoder, content)

    monkeypatch.setattr(_Decoder, "_send", dies_first)

    async def act() -> None:
        async with DecoderPool(LIMITS) as pool:
            assert (await pool.decode(clip("young_man").read_bytes())).seconds > 1.0

    asyncio.run(act())


def test_the_longest_piece_of_voice_fits_a_part_with_the_pauses_around_it() -> None:
    def find(samples: object, most: float) -> list[tuple[int, int]]:
        starts = (3.0 + number * (most + 2.0) for number in range(3))
        return [(int(start * RATE), int((start + most) * RATE)) for start in starts]

    found = cut(Sound(np.zeros(60 * RATE, np.int16).tobytes()), find)
    assert [segment.is_long for segment in found] == [False] * 3


@pytest.mark.parametrize(
    ("voiced", "phrases"),
    [
        # The longer one of two pauses.
        (((1.0, 5.5), (5.8, 10.3), (11.8, 16.3)), [2, 1]),
        (((1.0, 5.5), (7.0, 11.5), (11.8, 16.3)), [1, 2]),
        # Both are long: neither part has one second of voice only.
        (((1.0, 2.0), (5.0, 11.0), (14.0, 18.0)), [2, 1]),
    ],
)
def test_of_the_ways_to_cut_the_one_with_the_best_pauses_and_parts_is_taken(
    voiced: tuple[tuple[float, float], ...], phrases: list[int]
) -> None:
    found = segments(30.0, *voiced)
    if len(found) == 1:
        found = found[0].parts()
    assert [len(part.phrases) for part in found] == phrases
