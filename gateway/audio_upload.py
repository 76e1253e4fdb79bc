"""A clip that is uploaded as multipart/form-data: written to the clips folder while it arrives.

One part of the form is the clip; the others are short fields. The clip is durable before a message names
it. Until it is whole its name begins with a dot, so that it is no clip, and what is cut off is removed.
"""

import asyncio
import os
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from gateway.errors import HttpError
from gateway.exchange import Exchange
from ipc.places import make_private

# The supervisor has the same limit, and refuses a larger clip.
CLIP_BYTES_MAX = 25 * 1024 * 1024
# The parts that are not audio, and the lines between parts.
_FIELD_BYTES_MAX = 64 * 1024
_PARTS_MAX = 16
# Written to the file at once, in a thread: disks may be slow.
_WRITE_BYTES = 1024 * 1024
_AUDIO = "audio"


class _Form:
    """Collects the parts of a form: the clip piece by piece, the fields as texts."""

    def __init__(self, part: str) -> None:
        self._part = part
        self.hint = f"send multipart/form-data with a part named {part}"
        self.fields: dict[str, bytearray] = {}
        self.audio = bytearray()
        self.audio_bytes = 0
        self.is_complete = False
        self._name = ""
        self._parts = 0
        self._header = bytearray()
        self._value = bytearray()

    def on_part_begin(self) -> None:
        self._name = ""
        self._parts += 1
        if self._parts > _PARTS_MAX:
            raise HttpError(400, f"the form has more than {_PARTS_MAX} parts", self.hint)

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(bytes(self._value))
            self._name = options.get(b"name", b"").decode(errors="replace")
        self._header.clear()
        self._value.clear()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == self._part:
            self.audio += data[start:end]
            self.audio_bytes += end - start
            if self.audio_bytes > CLIP_BYTES_MAX:
                fault = f"the clip has more than {CLIP_BYTES_MAX:,} bytes"
                raise HttpError(413, fault, "send it compressed (OGG/Opus), or in parts")
        else:
            field = self.fields.setdefault(self._name, bytearray())
            field += data[start:end]
            if len(field) > _FIELD_BYTES_MAX:
                raise HttpError(413, f"the part {self._name[:40]!r} is too long", "send a text as JSON")

    def on_end(self) -> None:
        self.is_complete = True

    def parser(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self.on_part_begin,
                "on_header_field": self.on_header_field,
                "on_header_value": self.on_header_value,
                "on_header_end": self.on_header_end,
                "on_part_data": self.on_part_data,
                "on_end": self.on_end,
            },
        )


def is_form(exchange: Exchange) -> bool:
    return exchange.header(b"content-type").lower().startswith("multipart/form-data")


async def store(exchange: Exchange, clips: Path, part: str = _AUDIO) -> tuple[str, dict[str, str]]:
    """Returns the name of the stored clip, which is this part of the form, and the form's other fields."""
    _, options = parse_options_header(exchange.header(b"content-type"))
    boundary = options.get(b"boundary", b"")
    form = _Form(part)
    if not boundary:
        raise HttpError(400, "the form has no boundary", form.hint)
    await asyncio.to_thread(make_private, clips)
    name = os.urandom(16).hex()
    partial = clips / f".{name}"
    file = await asyncio.to_thread(open, partial, "xb", opener=_privately)
    try:
        with file:
            await _copy(exchange, form, form.parser(boundary), file)
        await asyncio.to_thread(_publish, partial, clips / name)
    finally:
        await asyncio.to_thread(partial.unlink, missing_ok=True)
    return name, {key: bytes(value).decode(errors="replace") for key, value in form.fields.items()}


def discard(clips: Path, name: str) -> None:
    """Removes a clip that no message uses."""
    (clips / name).unlink(missing_ok=True)


async def _copy(exchange: Exchange, form: _Form, parser: MultipartParser, file: BinaryIO) -> None:
    try:
        while True:
            message = await exchange.receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "the connection ended before the clip did", "send it again")
            parser.write(message.get("body", b""))
            if len(form.audio) >= _WRITE_BYTES:
                await _write(form, file)
            if not message.get("more_body", False):
                break
        parser.finalize()
    except MultipartParseError as error:
        raise HttpError(400, f"the form cannot be read: {str(error)[:200]}", form.hint) from None
    if not form.is_complete:
        raise HttpError(400, "the form ends before its last part does", form.hint)
    if not form.audio_bytes:
        raise HttpError(400, "the form has no audio, or an empty one", form.hint)
    await _write(form, file)
    await asyncio.to_thread(_sync, file)


async def _write(form: _Form, file: BinaryIO) -> None:
    data, form.audio = form.audio, bytearray()
    await asyncio.to_thread(file.write, data)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _publish(part: Path, clip: Path) -> None:
    part.rename(clip)
    folder = os.open(clip.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
