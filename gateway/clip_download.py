"""The recorded clip of a message: sent whole or in the part that a player asks for, with its type.

The type is known from the first bytes, never from what the sender said, and browsers are told not to guess
another one. What is no audio that a browser plays is only ever saved as a file.
"""

import asyncio
import os
import re
from typing import BinaryIO

from gateway.errors import HttpError
from gateway.exchange import Exchange, Headers
from gateway.parts import Parts
from gateway.queries_api import first_of_message

# Read in a thread and sent before the next one: a player that stops reading holds no more than this.
_PART_BYTES = 256 * 1024
_HEAD_BYTES = 16
_UNKNOWN = "application/octet-stream"
# One part; a request for several gets the whole clip.
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def get_clip(parts: Parts, exchange: Exchange) -> None:
    """The recorded clip of a message, whole or a part of it."""
    assert exchange.token is not None
    exchange.query()
    message = exchange.parameters["message"]
    row = await first_of_message(parts, exchange, message)
    name = str(row.get("clip") or "")
    if not name.isalnum():
        raise HttpError(404, f"message {message} has no clip", "it was sent as a text")
    with parts.limiter.streams.one(exchange.token.id):
        try:
            file = await asyncio.to_thread(open, parts.clips / name, "rb", opener=_no_link)
        except OSError:
            hint = "[stt] clips_keep says how long clips are kept; the transcript stays"
            raise HttpError(404, f"the clip of message {message} has been removed", hint) from None
        with file:
            await _send(exchange, file)


async def _send(exchange: Exchange, file: BinaryIO) -> None:
    size = os.fstat(file.fileno()).st_size
    found = media_type(await asyncio.to_thread(file.read, _HEAD_BYTES))
    headers: Headers = ((b"content-type", found.encode()), (b"accept-ranges", b"bytes"))
    if found == _UNKNOWN:
        headers += ((b"content-disposition", b'attachment; filename="clip"'),)
    status, first, behind = 200, 0, size
    if (part := _part(exchange.header(b"range"), size)) is not None:
        status, (first, behind) = 206, part
        headers += ((b"content-range", f"bytes {first}-{behind - 1}/{size}".encode()),)
    await exchange.begin(status, (*headers, (b"content-length", str(behind - first).encode())))
    file.seek(first)
    while first < behind and (data := await asyncio.to_thread(file.read, min(_PART_BYTES, behind - first))):
        first += len(data)
        await exchange.send_part(data)
    await exchange.send_part(b"", more=False)


def _part(header: str, size: int) -> tuple[int, int] | None:
    """Returns the first byte that is wanted and the one behind the last; None for the whole clip."""
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not any(match.groups()):
        return None
    if not match[1]:  # the last bytes
        first, behind = max(0, size - int(match[2])), size
    else:
        first, behind = int(match[1]), min(size, int(match[2] or size) + 1)
    if first >= behind:
        headers = ((b"content-range", f"bytes */{size}".encode()),)
        raise HttpError(416, f"the clip has {size:,} bytes", "ask for a part within it", headers=headers)
    return first, behind


def media_type(head: bytes) -> str:
    """Returns the type of the audio that begins so."""
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "audio/webm"
    if head[4:8] == b"ftyp":
        return "audio/mp4"
    if head.startswith(b"OggS"):
        return "audio/ogg"
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return "audio/wav"
    if head.startswith(b"fLaC"):
        return "audio/flac"
    # Frames of MPEG audio, layer III, may come without a tag.
    is_frame = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2
    return "audio/mpeg" if head.startswith(b"ID3") or is_frame else _UNKNOWN


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
