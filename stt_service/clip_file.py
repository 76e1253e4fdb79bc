"""Reads the bytes of a clip from a regular file of the expected size; never blocks."""

import os
import stat

from stt_service.errors import CannotTranscribe
from stt_service.options import Limits

_SEND_AGAIN = "send the clip again"


def read_clip(path: str, expected_bytes: int, limits: Limits) -> bytes:
    """Follows no symbolic link, and does not block on a pipe that was put in the clip's place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise CannotTranscribe(f"the clip's file cannot be opened: {error.strerror}", _SEND_AGAIN) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise CannotTranscribe("the clip is not a plain file", _SEND_AGAIN)
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > limits.bytes_max:
            raise CannotTranscribe(
                f"the clip has {found.st_size:,} bytes, the limit is {limits.bytes_max:,}",
                "send it compressed (OGG/Opus), or in parts",
            )
        if found.st_size != expected_bytes:
            raise CannotTranscribe(
                f"the clip's file has {found.st_size:,} bytes instead of {expected_bytes:,}", _SEND_AGAIN
            )
        return file.read(limits.bytes_max)
