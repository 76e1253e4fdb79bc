"""Copies a clip into the clips folder under a new name, durable before a message names it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hermesctl.durable_files import sync_folder
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from ipc.places import Places, make_private

# The supervisor has the same limit; a larger file need not be copied first.
BYTES_MAX = 25 * 1024 * 1024
_COPY_BYTES = 1024 * 1024


def store(places: Places, audio: str) -> str:
    """Copies a file, or standard input for `-`; returns the clip's name once it would survive a crash."""
    # Root may use a service of another user, whose folders must stay that user's.
    if os.geteuid() != 0 or not places.clips.exists():
        make_private(places.clips)
    name = os.urandom(16).hex()
    # The dot marks an unfinished copy, which is not a clip.
    part = places.clips / f".{name}"
    try:
        with _opened(audio) as source, open(part, "xb", opener=_privately) as copy:
            _copy(source, copy)
            _give_to_owner(copy, places.clips)
            os.fsync(copy.fileno())
        part.rename(places.clips / name)
        sync_folder(places.clips)
    except OSError as error:
        raise CommandError(
            f"{audio} cannot be stored: {error.strerror}", "name a sound file", Exit.REFUSED
        ) from None
    finally:
        part.unlink(missing_ok=True)
    return name


def discard(places: Places, name: str) -> None:
    """Removes a clip that no message uses."""
    (places.clips / name).unlink(missing_ok=True)


@contextmanager
def discarded_if_refused(places: Places, name: str) -> Iterator[None]:
    """Around the submission of a clip; of no clip when the name is empty."""
    try:
        yield
    except CommandError as error:
        if name and error.code == Exit.REFUSED:
            discard(places, name)
        raise


def _opened(audio: str) -> BinaryIO:
    if audio == "-":
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    if not Path(audio).is_file():
        problem = "is not a file" if Path(audio).exists() else "does not exist"
        raise CommandError(f"{audio} {problem}", "name a sound file, or - for standard input", Exit.USAGE)
    return open(audio, "rb")


def _copy(source: BinaryIO, copy: BinaryIO) -> None:
    size = 0
    while piece := source.read(_COPY_BYTES):
        size += len(piece)
        if size > BYTES_MAX:
            raise CommandError(
                f"the clip has more than {BYTES_MAX:,} bytes",
                "send it compressed (OGG/Opus), or in parts",
                Exit.REFUSED,
            )
        copy.write(piece)
    if not size:
        raise CommandError("the clip is empty", "record it again", Exit.REFUSED)


def _give_to_owner(copy: BinaryIO, folder: Path) -> None:
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(copy.fileno(), owner.st_uid, owner.st_gid)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
