"""Hypothesis strategies for wire messages, built from their types: any message within the bounds."""

from collections.abc import Sequence
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


def messages(struct: type[msgspec.Struct], words: Sequence[str] = ()) -> st.SearchStrategy[Any]:
    """Instances of a struct with every field drawn; `words` are texts that mean something to the receiver."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return _struct(info, words)


def _struct(info: inspect.StructType, words: Sequence[str]) -> st.SearchStrategy[Any]:
    return st.builds(info.cls, **{field.name: _values(field.type, words) for field in info.fields})


def _values(kind: inspect.Type, words: Sequence[str]) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.IntType():
            low = -(2**63) if kind.ge is None else kind.ge
            high = 2**63 - 1 if kind.le is None else kind.le
            # Small numbers are those that mean something.
            return st.integers(low, high) | st.integers(max(low, 0), min(high, 3))
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False)
        case inspect.StrType():
            longest = _TEXT_CHARACTERS if kind.max_length is None else kind.max_length
            texts = st.text(max_size=min(longest, _TEXT_CHARACTERS))
            known = [word for word in words if len(word) <= longest]
            return st.sampled_from(known) | texts if known else texts
        case inspect.BytesType():
            return st.binary(max_size=_TEXT_CHARACTERS)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.UnionType():
            return st.one_of(*(_values(each, words) for each in kind.types))
        case inspect.VarTupleType():
            return st.lists(_values(kind.item_type, words), max_size=3).map(tuple)
        case inspect.DictType():
            keys, values = _values(kind.key_type, words), _values(kind.value_type, words)
            return st.dictionaries(keys, values, max_size=3)
        case inspect.StructType():
            return _struct(kind, words)
        case inspect.AnyType():
            return PLAIN
        case _:
            raise TypeError(f"no strategy for {kind}")
