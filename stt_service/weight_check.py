"""Checks that STT weights are complete before loading: damaged weights load and produce nonsense."""

import hashlib
from pathlib import Path

from stt_service.errors import CannotServe

# sha256 of the files that determine the output, as `hermesctl models pull` stores them; a test compares them.
KNOWN = {
    "tiny.en": {
        "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
    "base": {
        "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    },
}
# faster-whisper would look for a missing one of these on the hub.
_NEEDED = ("model.bin", "config.json", "tokenizer.json")


def find_weights(models: Path, name: str) -> Path:
    """Returns the folder of intact weights. Reads every byte, a tenth of a second per 100 MB."""
    folder = models / name
    hint = (
        f"hermesctl models pull {name}" if name in KNOWN else f"put a CTranslate2 Whisper model into {folder}"
    )
    if not folder.is_dir():
        raise CannotServe(f"there are no weights of {name}", hint)
    sums = KNOWN.get(name, dict.fromkeys(_NEEDED, ""))
    for file, expected in sums.items():
        try:
            found = _sum(folder / file)
        except OSError as error:
            raise CannotServe(f"{file} of {name} cannot be read: {error.strerror}", hint) from None
        if expected and found != expected:
            raise CannotServe(f"{file} of {name} is damaged: its checksum is wrong", hint)
    return folder


def _sum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
