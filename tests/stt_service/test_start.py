"""Missing, incomplete or damaged weights are told with their remedy; a killed service hears the next clip."""

import asyncio
import dataclasses
import os
import resource
import shutil
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from hermesctl.weight_catalogue import find
from ipc.stt_messages import NotTranscribed, Transcribed
from stt_service.weight_check import KNOWN
from tests.services.watching import running
from tests.stt_service.hearer import hearing, spec
from tests.stt_service.long_clips import two_windows
from tests.stt_service.sounds import clip
from tests.weights import pulled


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def damage(folder: Path, how: str) -> str:
    """Returns what must be said."""
    if how == "absent":
        shutil.rmtree(folder)
        return "there are no weights of tiny.en"
    if how == "without tokenizer":
        (folder / "tokenizer.json").unlink()
        return "tokenizer.json of tiny.en cannot be read: No such file or directory"
    if how == "cut":
        os.truncate(folder / "model.bin", 1_000_000)
    else:
        with (folder / "model.bin").open("r+b") as file:
            file.seek(40_000_000)
            file.write(b"flipped")
    return "model.bin of tiny.en is damaged: its checksum is wrong"


@pytest.mark.parametrize("how", ["absent", "without tokenizer", "cut", "flipped"])
def test_c5_weights_that_are_not_whole_are_a_clear_error_with_the_command_that_mends(
    tmp_path: Path, how: str
) -> None:
    shutil.copytree(pulled("tiny.en") / "tiny.en", tmp_path / "tiny.en")
    said = damage(tmp_path / "tiny.en", how)

    async def story() -> None:
        async with running(spec(models=str(tmp_path))) as watched:
            failed = await watched.seen("failed")
            assert failed.detail.startswith(f"{said}; starts again")
            assert failed.hint == "hermesctl models pull tiny.en"
            assert watched.states()[:3] == ["starting", "warming", "failed"]

    run(story())


def test_the_checksums_are_those_of_the_catalogue() -> None:
    for name, sums in KNOWN.items():
        assert {file.name: file.sha256 for file in find(name).files} == sums


def test_bad_options_are_a_failure_that_names_them() -> None:
    async def story() -> None:
        async with running(spec(threads="many")) as watched:
            failed = await watched.seen("failed")
            assert "threads" in failed.detail
            assert failed.hint == "check [stt] in hermes.toml"

    run(story())


def test_a_language_that_the_weights_do_not_know_is_a_failure_that_names_it() -> None:
    async def story() -> None:
        async with running(spec(language="de")) as watched:
            failed = await watched.seen("failed")
            assert failed.detail.startswith("this STT model knows English only, not 'de'")
            assert "models pull base" in failed.hint

    run(story())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_service_lost_in_the_middle_of_a_clip_hears_the_next_one(number: signal.Signals) -> None:
    async def story() -> None:
        async with hearing() as hearer:
            long = hearer.send(two_windows().content)
            await hearer.watched.until(lambda: len(hearer.progress(long)) >= 2)
            os.kill(hearer.watched.row()["pid"], number)
            await hearer.watched.seen("ready", times=2)
            assert isinstance(await hearer.hear(clip("young_man")), Transcribed)
            assert not [one for one in hearer.said() if isinstance(one, Transcribed) and one.message == long]

    run(story())


def test_clips_sent_while_it_warms_are_heard_when_it_is_ready() -> None:
    async def story() -> None:
        async with hearing() as hearer:
            os.kill(hearer.watched.row()["pid"], signal.SIGKILL)
            await hearer.watched.seen("warming", times=2)
            assert isinstance(await hearer.hear(clip("young_man")), Transcribed)

    run(story())


def test_the_key_is_in_no_repr() -> None:
    from stt_service.options import Options, Remote

    options = Options(remote=Remote("http://127.0.0.1:1/v1", "whisper-1", "a-secret-of-mine"))
    assert "a-secret-of-mine" not in repr(options)
    assert "a-secret-of-mine" not in repr(dataclasses.replace(spec(), options={"key": "a-secret-of-mine"}))


def test_a_service_out_of_memory_in_the_middle_of_a_clip_hears_the_next_one() -> None:
    async def story() -> None:
        async with hearing() as hearer:
            await hearer.hear(clip("young_man"))
            pid = hearer.watched.row()["pid"]
            _, most = resource.prlimit(pid, resource.RLIMIT_DATA)
            hungry = hearer.send(two_windows().content)
            await hearer.watched.until(lambda: bool(hearer.progress(hungry)))
            resource.prlimit(pid, resource.RLIMIT_DATA, (1024**2, most))
            await hearer.watched.until(
                lambda: (
                    "resting" in hearer.watched.states()
                    or any(isinstance(one, NotTranscribed) and one.message == hungry for one in hearer.said())
                )
            )
            if "resting" not in hearer.watched.states():
                resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
            else:
                await hearer.watched.seen("ready", times=2)
            assert isinstance(await hearer.hear(clip("young_man")), Transcribed)

    run(story())
