"""Plain values of wire messages made from their types: the smallest valid one, and each way out of a bound.

They are mappings and not structs, because a struct of ours is never out of bounds on its way through the
codec: whoever attacks writes MessagePack by hand, and so does `frame`.
"""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from msgspec import inspect

from ipc.codec import FRAME_BYTES_MAX, VERSION

Plain = dict[str, Any]
# What a number may not be, whatever its field: over 63 bits, and below every bound that there is.
_NUMBERS = (2**63, 2**64 - 1, -(2**63))
# Room for the rest of a message in one frame.
_LONGEST = FRAME_BYTES_MAX - 4096


def structs(union: Any) -> tuple[type[msgspec.Struct], ...]:
    return get_args(union) or (union,)


def frame(message: Plain) -> bytes:
    """The bytes of a message, true to no struct."""
    return bytes([VERSION]) + msgspec.msgpack.encode(message)


def smallest(struct: type[msgspec.Struct]) -> Plain:
    """A valid message with every field."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    tag = {str(info.tag_field): info.tag} if info.tag_field else {}
    return tag | {field.encode_name: _valid(field.type) for field in info.fields}


def out_of_bounds(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Plain]]:
    """Every field of a message beyond its bound in every way: its path, and the message."""
    valid = smallest(struct)
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        for path, value in _beyond(field.encode_name, field.type):
            yield path, valid | {field.encode_name: value}


def unbounded(name: str, kind: inspect.Type) -> Iterator[str]:
    """The places within a type that take a value of any size."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            if kind.ge is None or kind.le is None:
                yield name
        case inspect.StrType():
            if kind.max_length is None:
                yield name
        case inspect.BoolType() | inspect.NoneType() | inspect.LiteralType():
            return
        case inspect.UnionType():
            for each in kind.types:
                yield from unbounded(name, each)
        case inspect.VarTupleType():
            if kind.max_length is None:
                yield name
            yield from unbounded(f"{name}[]", kind.item_type)
        case inspect.StructType():
            for field in kind.fields:
                yield from unbounded(f"{name}.{field.name}", field.type)
        case _:
            yield name


def _valid(kind: inspect.Type) -> Any:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return max(1, kind.ge or 0)
        case inspect.StrType():
            return "a"
        case inspect.BoolType():
            return False
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return next(_valid(each) for each in kind.types if not isinstance(each, inspect.NoneType))
        case inspect.VarTupleType():
            return []
        case inspect.StructType():
            return {field.encode_name: _valid(field.type) for field in kind.fields}
        case _:
            raise TypeError(f"no value of {kind} is known to be valid")


def _beyond(name: str, kind: inspect.Type) -> Iterator[tuple[str, Any]]:
    match kind:
        case inspect.IntType():
            yield from ((name, value) for value in _NUMBERS)
        case inspect.FloatType():
            yield from ((name, value) for value in (float("inf"), float("-inf"), float("nan"), 1e300, -1.0))
        case inspect.StrType():
            assert kind.max_length is not None, name
            yield name, "x" * (kind.max_length + 1)
            yield name, "9" * _LONGEST
        case inspect.LiteralType():
            yield from ((name, value) for value in ("", "x" * 1000, 7))
        case inspect.UnionType():
            for each in kind.types:
                yield from _beyond(name, each)
        case inspect.VarTupleType():
            assert kind.max_length is not None, name
            yield name, [_valid(kind.item_type)] * (kind.max_length + 1)
            for path, value in _beyond(f"{name}[]", kind.item_type):
                yield path, [value]
        case inspect.StructType():
            for field in kind.fields:
                for path, value in _beyond(f"{name}.{field.encode_name}", field.type):
                    yield path, _valid(kind) | {field.encode_name: value}
