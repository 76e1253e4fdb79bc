"""Bytes to messages and back: a version byte, then MessagePack; a frame over its limit never passes."""

from typing import Any, Generic, TypeVar

import msgspec

from ipc.errors import FrameTooLarge, Unreadable, Unwritable, WrongVersion

VERSION = 1
# A frame holds at most one history or one tool result; both are cut far below this by whoever makes them.
FRAME_BYTES_MAX = 8 * 1024 * 1024

_PREFIX = bytes([VERSION])
_UNREADABLE_HINT = "see docs/protocol.md for the messages"
_Message = TypeVar("_Message")
_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct, limit: int = FRAME_BYTES_MAX) -> bytes:
    """The frame of a message; FrameTooLarge when over the limit, Unwritable when no bytes can say it."""
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


class Decoder(Generic[_Message]):
    """Reads the frames of one direction, given as a union of tagged structs."""

    def __init__(self, union: type[_Message] | object) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Message] = msgspec.msgpack.Decoder(union)

    def decode(self, frame: bytes) -> _Message:
        if len(frame) > FRAME_BYTES_MAX:
            raise FrameTooLarge(f"a frame of {len(frame)} bytes arrived", "the peer must cut what it sends")
        if not frame:
            raise Unreadable("an empty frame arrived", "send a version byte and a message")
        if frame[0] != VERSION:
            raise WrongVersion(
                f"the peer speaks protocol {frame[0]}, this is protocol {VERSION}",
                "use hermesctl and worker of the same version as the supervisor, then restart it",
            )
        try:
            return self._decoder.decode(memoryview(frame)[1:])
        except msgspec.MsgspecError as error:
            raise Unreadable(f"a frame could not be read: {error}", _UNREADABLE_HINT) from None
        except (UnicodeDecodeError, RecursionError) as error:
            # msgspec lets these two through: bytes that are no UTF-8, and values nested thousands deep.
            raise Unreadable(f"a frame could not be read: {type(error).__name__}", _UNREADABLE_HINT) from None


def values(message: msgspec.Struct) -> tuple[Any, ...]:
    """The fields of a message in their order, as they are."""
    return msgspec.structs.astuple(message)
