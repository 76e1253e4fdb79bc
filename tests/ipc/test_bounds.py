"""Every value that comes from outside has a bound, and the decoder holds it."""

from typing import Any

import msgspec
import pytest
from msgspec import inspect

from ipc import messages, service_messages, stt_messages
from ipc.bounds import SENTENCE_CHARACTERS_MAX, sentence
from ipc.codec import FRAME_BYTES_MAX, Decoder, Encoder
from ipc.errors import Unreadable, Unwritable, WireError
from tests.wire_values import frame, out_of_bounds, smallest, structs, unbounded

# Every direction that ends in the supervisor.
INCOMING: dict[str, Any] = {
    "Request": messages.Request,
    "FromWorker": messages.FromWorker,
    "FromService": service_messages.FromService,
    "FromStt": stt_messages.FromStt,
    "FromZygote": service_messages.FromZygote,
}
STRUCTS = [(name, struct) for name, union in INCOMING.items() for struct in structs(union)]


def _decode(direction: str, message: dict[str, Any]) -> object:
    decoder: Decoder[object] = Decoder(INCOMING[direction])
    return decoder.decode(frame(message))


@pytest.mark.parametrize(("direction", "struct"), STRUCTS, ids=lambda each: getattr(each, "__name__", each))
def test_h13_every_incoming_field_has_a_bound(direction: str, struct: type[msgspec.Struct]) -> None:
    """A field without one fails here: give it a type of ipc/bounds.py."""
    assert list(unbounded(struct.__name__, inspect.type_info(struct))) == []


def test_a_field_without_a_bound_is_noticed() -> None:
    class Loose(msgspec.Struct):
        number: int
        text: str
        entries: tuple[str, ...]
        anything: Any
        bounded: messages.Usage

    found = list(unbounded("Loose", inspect.type_info(Loose)))
    assert found == ["Loose.number", "Loose.text", "Loose.entries", "Loose.entries[]", "Loose.anything"]


@pytest.mark.parametrize(("direction", "struct"), STRUCTS, ids=lambda each: getattr(each, "__name__", each))
def test_h13_a_value_beyond_its_bound_is_refused_by_its_name(
    direction: str, struct: type[msgspec.Struct]
) -> None:
    assert isinstance(_decode(direction, smallest(struct)), struct)
    for path, message in out_of_bounds(struct):
        with pytest.raises(WireError) as refused:
            _decode(direction, message)
        name = path.rpartition(".")[2].removesuffix("[]")
        assert name in refused.value.fault
        assert len(refused.value.fault) < 200, "a fault never quotes what it refuses"


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"t": "seen", "cursor": "c", "session": "s", "seq": -1}, "seq is below 0"),
        ({"t": "unsubscribe", "subscription": 2**63}, "subscription is above 9223372036854775807"),
        ({"t": "retry", "turn": "x" * 301, "key": "k"}, "turn is longer than 300 characters"),
        ({"t": "queue", "session": "s", "act": "secret"}, "act is none of the words it may be"),
        ({"t": "secret"}, "t names no message of this direction"),
        ({"t": "submit", "session": "s", "text": "t"}, "key is missing"),
        ({"t": "submit", "session": 7, "text": "t", "key": "k"}, "session: Expected `str`, got `int`"),
    ],
)
def test_a_fault_is_a_sentence_about_a_field(message: dict[str, Any], fault: str) -> None:
    with pytest.raises(Unreadable) as refused:
        _decode("Request", message)
    assert refused.value.fault == f"a frame could not be read: {fault}"


def test_a_sender_learns_of_a_bound_before_the_receiver_does() -> None:
    encoder: Encoder[messages.FromWorker] = Encoder(messages.FromWorker)
    usage = messages.Usage(input_tokens=2**63)
    with pytest.raises(Unwritable, match=r"Finished cannot be sent: usage.input_tokens is above"):
        encoder.encode(messages.Finished("s/1", 1, "text", usage))


def test_two_texts_of_the_widest_characters_fit_one_frame() -> None:
    """What the sizes of ipc/bounds.py rest on."""
    texts = {"arguments": "\U0001f600" * 1_000_000, "result": "\U0001f600" * 1_000_000}
    assert len(msgspec.msgpack.encode(texts)) < FRAME_BYTES_MAX - 64 * 1024


def test_a_long_sentence_is_cut_with_a_mark() -> None:
    assert sentence("short") == "short"
    cut = sentence("x" * 5000)
    assert len(cut) == SENTENCE_CHARACTERS_MAX
    assert cut.endswith("x…")
