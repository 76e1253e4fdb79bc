"""Requests that no honest client sends: each is refused by name, and the service lives."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ipc.codec import FRAME_BYTES_MAX, VERSION
from ipc.messages import Accepted, Done, Refused, Request, Subscribed, Table
from tests.fake_model import FakeModel
from tests.raw_client import RawClient
from tests.service import Service, settings_for
from tests.wire_values import Plain, out_of_bounds, structs


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    """One for all tests of this file: none of them may do it any harm."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    with Service(home, settings_for(model_server, workers="count = 1")) as running:
        running.say("demo", "hello")
        running.listen("demo").ending("demo/1")
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[RawClient]:
    """Afterwards the same process still answers, and answers a turn too."""
    assert service.process is not None
    pid = service.status()["pid"]
    with RawClient(service.places) as raw:
        yield raw
    assert service.status()["pid"] == pid == service.process.pid
    assert service.process.poll() is None


@pytest.mark.parametrize("struct", structs(Request), ids=lambda struct: struct.__name__)
def test_h13_a_value_beyond_its_bound_is_refused_by_name(
    client: RawClient, struct: type[msgspec.Struct]
) -> None:
    for path, message in out_of_bounds(struct):
        assert path.partition("[")[0] in client.refused(message).error


TURNS = [
    "demo/" + "9" * 19,
    "demo/" + "9" * 250,
    "demo/٣",
    "demo/-1",
    "demo/01",
    "demo/1e3",
    "/1",
    "/",
    "",
    "demo/1\0",
    "m_" + "f" * 250,
]


@pytest.mark.parametrize("id", TURNS, ids=ascii)
def test_h13_an_id_that_nothing_has_is_refused_wherever_it_is_asked_for(client: RawClient, id: str) -> None:
    assert client.ask({"t": "show", "what": "story", "id": id}) == Table(())
    assert "is not known" in client.refused({"t": "retry", "turn": id, "key": "k"}).error
    client.refused({"t": "respond", "question": f"{id}#1", "text": "yes", "by": "me"})
    client.refused({"t": "queue", "session": "demo", "act": "drop", "message": id})
    client.refused({"t": "submit", "session": "demo", "text": "hi", "key": "k", "expect_turn": id})
    client.refused({"t": "interrupt", "session": "demo", "by": "me", "expect_turn": id})


PLACES = ["x:", "turns:", "turns:[", 'turns:["a", "b", "c"]', "turns:[1e400]", "turns:[" + "9" * 400 + "]"]
PLACES += ["turns:" + "[" * 4000, 'events:["\\ud800", 1]', "events:[null, 1]", "turns:[-1]", ":", "\0"]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ascii(place)[:20])
def test_h13_a_place_in_an_export_that_no_page_gave_is_refused(client: RawClient, place: str) -> None:
    answer = client.ask({"t": "care", "act": "export", "after": place})
    assert isinstance(answer, Refused) or place in ("turns:", ":")


CARES: list[Plain] = [
    {"act": "backup"},
    {"act": "backup", "file": "relative.db"},
    {"act": "backup", "file": "/dev/full/x"},
    {"act": "backup", "file": "/\0"},
    {"act": "backup", "file": "/"},
    {"act": "backup", "file": "/proc/self/x"},
    {"act": "backup", "file": "/" + "x" * 300},
    {"act": "backup", "file": "/" + "x/" * 2000},
    {"act": "prune", "older": "9" * 40},
    {"act": "prune", "older": "-1s"},
    {"act": "prune", "older": "٣" * 40},
    {"act": "prune", "keep": "9" * 38 + "TB"},
    {"act": "prune", "keep": "inf"},
    {"act": "prune", "keep": ""},
]


@pytest.mark.parametrize("care", CARES, ids=lambda care: ascii(care)[:60])
def test_h13_care_for_what_is_not_there_is_refused(client: RawClient, care: Plain) -> None:
    for _ in range(5):  # more often than such requests are served at once: none of them is left hanging
        client.refused({"t": "care"} | care)


def test_a_backup_touches_no_other_file(client: RawClient, tmp_path: Path) -> None:
    (tmp_path / "copy.db.part").write_text("somebody's")
    answer = client.ask({"t": "care", "act": "backup", "file": str(tmp_path / "copy.db")})
    assert isinstance(answer, Table)
    assert (tmp_path / "copy.db.part").read_text() == "somebody's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "copy.db.part"]


NAMES = ["", " demo", "demo ", "a\0b", "a\nb", "\u202edemo", "\ud7ff\ufdd0", "\x7f", "x" * 201, "\u200b"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_h13_a_name_that_no_session_may_have_is_refused_by_every_request(
    client: RawClient, name: str
) -> None:
    requests: list[Plain] = [
        {"t": "submit", "text": "hi", "key": "k"},
        {"t": "interrupt", "by": "me"},
        {"t": "queue", "act": "list"},
        {"t": "queue", "act": "clear"},
        {"t": "seen", "cursor": "c", "seq": 1},
    ]
    for request in requests:
        assert "session" in client.refused(request | {"session": name}).error
    assert "cursor" in client.refused({"t": "seen", "session": "demo", "cursor": name, "seq": 1}).error


def test_a_follow_from_a_place_that_is_yet_to_come_is_refused(client: RawClient) -> None:
    """Whoever waited there would never hear of the events before it."""
    told = "there is nothing after number"
    for after in (100_000, 2**63 - 1):
        assert told in client.refused({"t": "subscribe", "session": "demo", "after": after}).error
        assert told in client.refused({"t": "subscribe", "session": "nobody", "after": after}).error
    within = client.refused({"t": "subscribe", "session": None, "after": 1}).error
    assert "within one session" in within
    assert isinstance(client.ask({"t": "subscribe", "session": "nobody", "after": 0}), Subscribed)


def test_what_nobody_can_have_seen_is_refused(client: RawClient) -> None:
    seen = {"t": "seen", "session": "demo", "cursor": "c", "seq": 2**63 - 1}
    assert "cannot have been read" in client.refused(seen).error


@pytest.mark.parametrize("scale", [{"seats": 0}, {"seats": 10_001}, {"per_cpu": 0.0}, {"per_cpu": 1e9}])
def test_an_absurd_scale_is_refused(client: RawClient, scale: Plain) -> None:
    assert "cannot be had" in client.refused({"t": "scale"} | scale).error


def test_one_number_for_two_requests_is_answered_twice(client: RawClient) -> None:
    show = bytes([VERSION]) + msgspec.msgpack.encode({"t": "show", "what": "services"})
    for number in (b"\0" * 8, b"\xff" * 8):
        client.post(number, show)
        client.post(number, show)
        for _ in range(2):
            assert client.receive() == (number, Table(()))


def test_a_follow_under_a_number_in_use_takes_its_place(client: RawClient) -> None:
    follow = bytes([VERSION]) + msgspec.msgpack.encode({"t": "subscribe", "session": "twice"})
    unfollow = bytes([VERSION]) + msgspec.msgpack.encode({"t": "unsubscribe", "subscription": 7})
    for _ in range(2):
        client.post((7).to_bytes(8), follow)
        assert client.receive() == ((7).to_bytes(8), Subscribed(0))
    client.post((8).to_bytes(8), unfollow)
    assert client.receive() == ((8).to_bytes(8), Done())
    assert isinstance(client.ask({"t": "submit", "session": "twice", "text": "hi", "key": "k"}), Accepted)
    client.ask({"t": "interrupt", "session": "twice", "by": "me"})
    assert isinstance(client.ask({"t": "show", "what": "status"}), Table)


@pytest.mark.parametrize("number", [b"", b"\1", b"\0" * 9, b"x" * 100_000], ids=len)
def test_a_request_number_of_another_size_is_refused(client: RawClient, number: bytes) -> None:
    client.post(number, bytes([VERSION]) + msgspec.msgpack.encode({"t": "show", "what": "status"}))
    arrived = client.receive()
    assert arrived is not None
    assert arrived[0] == number[:8]
    assert isinstance(arrived[1], Refused)
    assert "8 bytes" in arrived[1].error


BODIES = [b"", b"\0", bytes([VERSION]), bytes([VERSION + 1]), bytes([VERSION]) + b"\x91" * 100_000]
BODIES += [bytes([VERSION]) + b"\xdd\xff\xff\xff\xff", bytes([VERSION]) + b"\x81\xa1t\xa4\xff\xfe\xfd\xfc"]
BODIES += [bytes([VERSION]) + msgspec.msgpack.encode({"t": "stop"}) + b"\0", b"x" * FRAME_BYTES_MAX]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: f"{body[:8].hex()}-{len(body)}")
def test_h13_a_body_that_is_no_request_is_refused(client: RawClient, body: bytes) -> None:
    client.refused(body)


def test_parts_that_are_no_request_are_ignored(client: RawClient) -> None:
    client.post(b"")
    client.post(b"\0" * 8)
    client.post(b"\0" * 8, b"", b"", b"")
    assert isinstance(client.ask({"t": "show", "what": "status"}), Table)
