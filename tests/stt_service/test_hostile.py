"""Files that hurt: each ends by name, the service lives, and what decodes can reach nothing of the host."""

import asyncio
import os
import re
import resource
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from ipc.codec import encode
from ipc.stt_messages import NotTranscribed, Transcribe, Transcribed
from stt_service.audio_decoding import decode
from stt_service.decoder_pool import DecoderPool
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from tests.services.watching import has_ended
from tests.stt_service.conftest import Listen
from tests.stt_service.hearer import Hearer, hearing
from tests.stt_service.hostile import HEARD, hostile_files, wave
from tests.stt_service.sounds import clip, file_of, samples_of, silence
from tests.waiting import soon, until

# Of one clip, on a machine that others use; the decoder's own limit is 20 s.
_CLIP_SECONDS_MAX = 30.0


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def what_became(answer: Transcribed | NotTranscribed) -> str:
    return answer.reason if isinstance(answer, NotTranscribed) else HEARD


def test_c7_fifty_hostile_files_end_by_name_and_the_service_lives(listen: Listen) -> None:
    files = hostile_files()

    async def story(hearer: Hearer) -> None:
        pid = hearer.watched.row()["pid"]
        unexpected = {}
        for name, (content, pattern) in files.items():
            async with asyncio.timeout(_CLIP_SECONDS_MAX):
                became = what_became(await hearer.hear(content))
            if not re.search(pattern, became):
                unexpected[name] = became
        assert unexpected == {}
        assert isinstance(await hearer.hear(clip("young_man")), Transcribed)
        assert hearer.watched.row()["pid"] == pid
        assert max_memory_bytes(pid) < 1024**3

    listen(story)


def test_what_is_missing_of_a_damaged_clip_is_said(listen: Listen) -> None:
    files = hostile_files()

    async def story(hearer: Hearer) -> None:
        for kind in ("ogg", "webm", "flac", "wav"):
            answer = await hearer.hear(files[f"{kind}, its second half lost"][0])
            assert isinstance(answer, Transcribed)
            assert re.search(
                "only 3.. s could be decoded|the end of the file is missing", str(answer.cautions)
            )

    listen(story)


def test_paths_that_are_no_plain_files_of_the_told_size_are_refused(tmp_path: Path, listen: Listen) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(clip("young_man"))
    (tmp_path / "large").write_bytes(b"OggS")
    os.truncate(tmp_path / "large", 30 * 1024 * 1024)
    reasons = {
        "pipe": "the clip is not a plain file",
        "link": "the clip's file cannot be opened: Too many levels of symbolic links",
        "large": "the clip has 31,457,280 bytes, the limit is 26,214,400",
        ".": "the clip is not a plain file",
    }

    async def story(hearer: Hearer) -> None:
        for name, reason in reasons.items():
            assert what_became(await hearer.hear(tmp_path / name)) == reason
        order = Transcribe("m_grown", str(clip("young_man")), 4, 60.0)
        hearer.watched.services.send("stt", encode(order))
        assert what_became(await hearer.answer("m_grown")).endswith("bytes instead of 4")

    listen(story)


def test_a_killed_decoder_costs_at_most_its_clip() -> None:
    async def story() -> None:
        async with DecoderPool(Limits()) as pool:
            await pool.warm_up()
            sound = await pool.decode(clip("young_man").read_bytes())
            (first,) = decoders()
            first.kill()
            await soon(lambda: not first.is_running() or first.status() == psutil.STATUS_ZOMBIE)
            # Found dead with the clip in hand: the clip is given to another one.
            assert (await pool.decode(clip("young_man").read_bytes())).samples == sound.samples

    run(story())


def test_c4_a_decoder_that_stands_still_is_killed_at_its_limit_and_the_next_clip_works() -> None:
    async def story() -> None:
        async with DecoderPool(Limits(decode_seconds_max=3.0)) as pool:
            await pool.warm_up()
            await pool.decode(clip("young_man").read_bytes())
            (stopped,) = decoders()
            stopped.send_signal(signal.SIGSTOP)
            with pytest.raises(CannotTranscribe, match="could not be decoded within 3 s"):
                await pool.decode(clip("young_man").read_bytes())
            assert (await pool.decode(clip("young_man").read_bytes())).seconds > 2

    run(story())


def test_a_clip_that_wants_more_memory_than_allowed_is_refused_by_name() -> None:
    content = file_of(silence(800), "flac", rate=16_000)

    async def story() -> None:
        async with DecoderPool(Limits(decode_memory_bytes=16 * 1024 * 1024)) as pool:
            with pytest.raises(CannotTranscribe, match=r"more memory to decode|crashes the decoder"):
                await pool.decode(content)
            assert (await pool.decode(clip("young_man").read_bytes())).seconds > 2

    run(story())


def test_a_decoder_can_open_nothing() -> None:
    async def story() -> None:
        async with DecoderPool(Limits()) as pool:
            await pool.decode(clip("young_man").read_bytes())
            (decoder,) = decoders()
            assert resource.prlimit(decoder.pid, resource.RLIMIT_NOFILE) == (0, 0)
            assert resource.prlimit(decoder.pid, resource.RLIMIT_CORE) == (0, 0)
            assert resource.prlimit(decoder.pid, resource.RLIMIT_AS)[0] < 2 * 1024**3
            assert decoder.net_connections() == []

    run(story())


def test_decoders_end_with_their_service() -> None:
    async def story() -> None:
        async with hearing() as hearer:
            service = psutil.Process(hearer.watched.row()["pid"])
            children = service.children()
            assert children
            os.kill(service.pid, signal.SIGKILL)
            await hearer.watched.seen("resting")
            await soon(lambda: all(has_ended(child.pid) for child in children))

    run(story())


def test_limits_are_those_that_were_given() -> None:
    speech = file_of(samples_of("leisure"), "wav")
    with pytest.raises(CannotTranscribe, match="the limit is 5 s"):
        decode(speech, Limits(seconds_max=5.0))
    with pytest.raises(CannotTranscribe, match="has 16,000 samples a second, 4,000 to 8,000 are taken"):
        decode(speech, Limits(rate_max=8_000))
    with pytest.raises(CannotTranscribe, match="has 2 channels, 1 to 1 are taken"):
        decode(wave(channels=2), Limits(channels_max=1))
    until(lambda: decode(speech, Limits()).seconds > 7)


def decoders() -> list[psutil.Process]:
    """Of a pool in this very process."""
    return [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and "stt_service.decoder" in child.cmdline()
    ]


def max_memory_bytes(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) * 1024
