"""Frames: every message comes back as it was sent, and nothing else is ever taken for a message."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc import messages, service_messages, stt_messages
from ipc.codec import FRAME_BYTES_MAX, VERSION, Decoder, encode
from ipc.errors import FrameTooLarge, Unreadable, Unwritable, WireError, WrongVersion
from tests.wire_strategies import messages as values

DIRECTIONS: dict[str, Any] = {
    name: getattr(module, name)
    for module, names in (
        (messages, ("FromWorker", "ToWorker", "Request", "Answer")),
        (service_messages, ("FromService", "ToZygote", "FromZygote")),
        (stt_messages, ("ToStt", "FromStt")),
    )
    for name in names
}
STRUCTS: list[tuple[str, type[msgspec.Struct]]] = [
    (name, struct) for name, union in DIRECTIONS.items() for struct in get_args(union) or (union,)
]


@pytest.mark.parametrize(
    ("direction", "struct"), STRUCTS, ids=lambda value: getattr(value, "__name__", value)
)
def test_every_message_comes_back_as_it_was_sent(direction: str, struct: type[msgspec.Struct]) -> None:
    decoder: Decoder[Any] = Decoder(DIRECTIONS[direction])

    @given(values(struct))
    def round_trip(message: msgspec.Struct) -> None:
        assert decoder.decode(encode(message)) == message

    round_trip()


def test_every_struct_of_the_protocol_has_a_direction() -> None:
    # ServiceStart is the one line on a service's standard input; it never is a frame.
    travelling = {struct for _, struct in STRUCTS} | {service_messages.ServiceStart}
    defined = {
        value
        for module in (messages, service_messages, stt_messages)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, messages.Message) and value is not messages.Message
    }
    assert defined == travelling


@pytest.mark.parametrize("union", DIRECTIONS.values(), ids=DIRECTIONS)
def test_tags_are_distinct_within_a_direction(union: Any) -> None:
    structs = get_args(union) or (union,)
    assert len({struct.__struct_config__.tag for struct in structs}) == len(structs)


@given(st.binary(max_size=200))
def test_garbage_is_unreadable_and_nothing_worse(garbage: bytes) -> None:
    for union in DIRECTIONS.values():
        with pytest.raises(WireError):
            Decoder(union).decode(bytes([VERSION]) + b"\xc1" + garbage)


@given(frame=st.binary(max_size=80), union=st.sampled_from(list(DIRECTIONS.values())))
def test_whatever_arrives_is_a_message_or_a_wire_error(frame: bytes, union: Any) -> None:
    try:
        message: msgspec.Struct = Decoder(union).decode(frame)
    except WireError:
        return
    assert isinstance(message, messages.Message)


@given(values(messages.Assign), st.data())
def test_a_truncated_frame_is_unreadable(message: msgspec.Struct, data: st.DataObject) -> None:
    frame = encode(message)
    length = data.draw(st.integers(1, len(frame) - 1))
    with pytest.raises(Unreadable):
        Decoder(messages.ToWorker).decode(frame[:length])


def test_an_empty_frame_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        Decoder(messages.Request).decode(b"")


def test_a_message_with_something_behind_it_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        Decoder(messages.Request).decode(encode(messages.Stop()) + b"\x00")


def test_text_that_is_no_utf8_is_unreadable() -> None:
    frame = encode(messages.Cut(reason="ab")).replace(b"ab", b"\xff\xfe")
    with pytest.raises(Unreadable):
        Decoder(messages.Answer).decode(frame)


def test_values_nested_too_deep_are_unreadable() -> None:
    frame = encode(messages.Table(rows=({"a": 0},)))
    assert frame.endswith(b"\xa1a\x00")
    with pytest.raises(Unreadable):
        Decoder(messages.Answer).decode(frame[:-1] + b"\x91" * 100_000 + b"\x00")


def test_a_false_length_takes_no_memory() -> None:
    frame = encode(messages.Table(rows=({"a": 0},)))
    with pytest.raises(Unreadable):
        Decoder(messages.Answer).decode(frame[:-1] + b"\xdd\xff\xff\xff\xff")


@given(values(messages.Request.__args__[0]), st.integers(0, 255).filter(lambda byte: byte != VERSION))
def test_another_version_is_refused_by_its_number(message: msgspec.Struct, version: int) -> None:
    with pytest.raises(WrongVersion, match=f"uses protocol {version}, this is protocol {VERSION}"):
        Decoder(messages.Request).decode(bytes([version]) + encode(message)[1:])


@pytest.mark.parametrize("text", ["\udcff", "half a pair \ud83d"])
def test_text_that_no_frame_can_carry_is_refused(text: str) -> None:
    with pytest.raises(Unwritable, match="Submit cannot be sent") as caught:
        encode(messages.Submit(session="s", text=text, key="k"))
    assert text not in caught.value.fault
    assert "UTF-8" in caught.value.hint


def test_a_number_over_64_bits_is_refused() -> None:
    with pytest.raises(Unwritable):
        encode(messages.Ack(frame=2**64))


def test_the_size_limit_holds_to_the_byte() -> None:
    empty = len(encode(messages.Cut(reason="")))
    # MessagePack needs five bytes before a long text where one is enough before an empty one.
    fitting = messages.Cut(reason="x" * (FRAME_BYTES_MAX - empty - 4))
    assert len(encode(fitting)) == FRAME_BYTES_MAX
    assert Decoder(messages.Answer).decode(encode(fitting)) == fitting
    with pytest.raises(FrameTooLarge, match="Cut is"):
        encode(messages.Cut(reason=fitting.reason + "x"))


def test_an_oversize_frame_is_not_decoded() -> None:
    with pytest.raises(FrameTooLarge):
        Decoder(messages.Answer).decode(bytes([VERSION]) * (FRAME_BYTES_MAX + 1))


def test_a_sender_may_set_a_lower_limit() -> None:
    with pytest.raises(FrameTooLarge, match="the limit is 10"):
        encode(messages.Cut(reason="longer than ten"), limit=10)


def test_keys_are_not_in_any_repr() -> None:
    endpoint = messages.ModelEndpoint("http://h/v1", "m", "sk-secret")
    assign = messages.Assign("s", "s/1", 1, (), messages.AgentSpec("default", "builtin"), endpoint)
    start = service_messages.ServiceStart(
        name="model",
        incarnation=1,
        endpoint="x",
        identity="sk-secret",
        options={"api_key": "sk-secret"},
        parent_pid=1,
    )
    for shown in (repr(endpoint), repr(assign), repr(start)):
        assert "sk-secret" not in shown
    assert encode(assign).count(b"sk-secret") == 1
