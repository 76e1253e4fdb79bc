"""The bytes of a clip from its file: a plain file of the told size, or the reason why not; never waits."""

import os
import stat

from stt_service.errors import CannotHear
from stt_service.options import Limits

_KEPT = "send the clip again"


def read_clip(path: str, told_bytes: int, limits: Limits) -> bytes:
    """Without following a link, and without blocking on a pipe that somebody put in the clip's place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise CannotHear(f"the clip's file cannot be opened: {error.strerror}", _KEPT) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise CannotHear("the clip is not a plain file", _KEPT)
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > limits.bytes_max:
            raise CannotHear(
                f"the clip has {found.st_size:,} bytes, the limit is {limits.bytes_max:,}",
                "send it compressed (OGG/Opus), or in parts",
            )
        if found.st_size != told_bytes:
            raise CannotHear(f"the clip's file has {found.st_size:,} bytes instead of {told_bytes:,}", _KEPT)
        return file.read(limits.bytes_max)
