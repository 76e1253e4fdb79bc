"""Messages to bytes and back: a version byte, then MessagePack, within the frame limit.

A frame that violates the protocol is refused with a sentence that names the field and never quotes its value:
values from peers may be secret, and as long as a frame.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec

from ipc.errors import FrameTooLarge, Unreadable, Unwritable, WrongVersion

VERSION = 5
# A frame holds at most one history or one tool result; their producers cut both far below this.
FRAME_BYTES_MAX = 8 * 1024 * 1024

_PREFIX = bytes([VERSION])
_OUT_OF_BOUNDS_HINT = "keep what is sent within the limits of docs/protocol.md"
_UNREADABLE_HINT = "see docs/protocol.md for the messages"
# Prefixes of msgspec's messages, and the fault that each means.
_FAULTS = (
    (r"Expected `str` of length <= (\d+)", "{field} is longer than {0} characters"),
    (r"Expected `array` of length <= (\d+)", "{field} has more than {0} entries"),
    (r"Expected `(?:int|float)` <= ([\d.e+-]+)", "{field} is above {0}"),
    (r"Expected `(?:int|float)` >= ([\d.e+-]+)", "{field} is below {0}"),
    (r"Invalid enum value", "{field} is none of the words it may be"),
    (r"Invalid value", "{field} names no message of this direction"),
    (r"Object missing required field `(\w+)`", "{0} is missing"),
    (r"(Expected `[^`]+`(?:, got `\w+`)?)", "{field}: {0}"),
)
_FIELD = r"`\$\.?([\w.\[\]]*)`$"

_Message = TypeVar("_Message")
_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct, limit: int = FRAME_BYTES_MAX) -> bytes:
    """Returns the frame of a message; raises FrameTooLarge above the limit, Unwritable for other values."""
    buffer = bytearray(_PREFIX)
    try:
        _encoder.encode_into(message, buffer, 1)
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Unwritable(
            f"{type(message).__name__} cannot be sent: {type(error).__name__}",
            "send valid UTF-8 text and numbers of at most 64 bits",
        ) from None
    if len(buffer) > limit:
        raise FrameTooLarge(
            f"{type(message).__name__} is {len(buffer)} bytes, the limit is {limit}",
            "shorten the text, or send the large part as a file",
        )
    return bytes(buffer)


class Encoder(Generic[_Message]):
    """Encodes the frames of one direction and checks its bounds before a receiver does."""

    def __init__(self, union: type[_Message] | object) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Message] = msgspec.msgpack.Decoder(union)

    def encode(self, message: msgspec.Struct) -> bytes:
        frame = encode(message)
        try:
            self._decoder.decode(memoryview(frame)[1:])
        except msgspec.MsgspecError as error:
            fault = f"{type(message).__name__} cannot be sent: {_fault(str(error))}"
            raise Unwritable(fault, _OUT_OF_BOUNDS_HINT) from None
        return frame


class Decoder(Generic[_Message]):
    """Decodes the frames of one direction, given as a union of tagged structs."""

    def __init__(self, union: type[_Message] | object) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Message] = msgspec.msgpack.Decoder(union)

    def decode(self, frame: bytes) -> _Message:
        if len(frame) > FRAME_BYTES_MAX:
            raise FrameTooLarge(f"a frame of {len(frame)} bytes arrived", "the peer must cut what it sends")
        if not frame:
            raise Unreadable("an empty frame arrived", "send a version byte and a message")
        if frame[0] != VERSION:
            raise WrongVersion(
                f"the peer uses protocol {frame[0]}, this is protocol {VERSION}",
                "use hermesctl and worker of the same version as the supervisor, then restart it",
            )
        try:
            return self._decoder.decode(memoryview(frame)[1:])
        except msgspec.MsgspecError as error:
            raise Unreadable(f"a frame could not be read: {_fault(str(error))}", _UNREADABLE_HINT) from None
        except (UnicodeDecodeError, RecursionError) as error:
            # msgspec raises other errors for these two: bytes that are no UTF-8, and deeply nested values.
            raise Unreadable(f"a frame could not be read: {type(error).__name__}", _UNREADABLE_HINT) from None


def values(message: msgspec.Struct) -> tuple[Any, ...]:
    """Returns the fields of a message in their order, unconverted."""
    return msgspec.structs.astuple(message)


def _fault(words: str) -> str:
    at = re.search(_FIELD, words[-200:])
    field = (at and at[1]) or "the message"
    for prefix, fault in _FAULTS:
        if found := re.match(prefix, words):
            return fault.format(*found.groups(), field=field)
    return "it is no message"
