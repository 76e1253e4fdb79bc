"""Hypothesis strategies for wire messages, built from their types: any message within the bounds."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

# What a field of type Any may hold: whatever MessagePack can say of plain data.
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
# Long texts find nothing that short ones do not, and a whole run has to fit into seconds.
_TEXT_CHARACTERS = 60


def messages(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Instances of a struct with every field drawn."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return _struct(info)


def _struct(info: inspect.StructType) -> st.SearchStrategy[Any]:
    return st.builds(info.cls, **{field.name: _values(field.type) for field in info.fields})


def _values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.IntType():
            low = -(2**63) if kind.ge is None else kind.ge
            return st.integers(low, 2**63 - 1 if kind.le is None else kind.le)
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False)
        case inspect.StrType():
            longest = _TEXT_CHARACTERS if kind.max_length is None else kind.max_length
            return st.text(max_size=min(longest, _TEXT_CHARACTERS))
        case inspect.BytesType():
            return st.binary(max_size=_TEXT_CHARACTERS)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.UnionType():
            return st.one_of(*map(_values, kind.types))
        case inspect.VarTupleType():
            return st.lists(_values(kind.item_type), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(_values(kind.key_type), _values(kind.value_type), max_size=3)
        case inspect.StructType():
            return _struct(kind)
        case inspect.AnyType():
            return PLAIN
        case _:
            raise TypeError(f"no strategy for {kind}")
