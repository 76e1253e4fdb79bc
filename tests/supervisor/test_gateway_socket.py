"""The gateway's socket: answers like the control socket, and no way to end or configure the service."""

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from ipc.codec import Decoder, encode
from ipc.messages import (
    Accepted,
    Care,
    Event,
    GatewayRequest,
    HandOver,
    Refused,
    Reload,
    Request,
    Show,
    Stop,
    Submit,
    Subscribe,
    Subscribed,
    Table,
    Unsubscribe,
)
from ipc.sockets import Wire
from tests.raw_client import RawClient
from tests.supervisor.puppet_service import PuppetService
from tests.wire_values import Plain

PRODUCT = Path(__file__).parents[2] / "supervisor"
DENIED = (Stop(), Care("backup", file="/tmp/x"), Reload(confirmed=True), HandOver())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PuppetService]:
    with PuppetService(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture
def gateway(service: PuppetService) -> Iterator[RawClient]:
    with RawClient(service.places, service.places.gateway) as client:
        yield client


def test_the_socket_belongs_to_its_user_alone(service: PuppetService) -> None:
    assert stat.S_IMODE(os.stat(service.places.gateway).st_mode) == 0o600


@pytest.mark.parametrize("request_", DENIED, ids=lambda request: type(request).__name__)
def test_f8_a_gateway_cannot_end_or_configure_the_service(
    service: PuppetService, gateway: RawClient, request_: Request
) -> None:
    answer = gateway.ask(encode(request_))
    assert isinstance(answer, Refused)
    assert answer.code == "denied"
    assert answer.error == f"{type(request_).__name__} is not taken on this socket"
    assert isinstance(gateway.ask(encode(Show("status"))), Table)
    assert service.status()["epoch"] == 1


def test_f8_what_is_denied_is_all_that_the_control_socket_takes_beyond() -> None:
    assert set(get_args(Request)) - set(get_args(GatewayRequest)) == {type(each) for each in DENIED}


@pytest.mark.parametrize(
    "message", [{"t": "stop", "x": 1}, {"t": "stopp"}, {"t": "submit"}, {"t": "care", "act": "burn"}, {}]
)
def test_a_request_that_cannot_be_read_is_invalid_or_denied_and_nothing_else(
    gateway: RawClient, message: Plain
) -> None:
    assert gateway.refused(message).code == ("denied" if message == {"t": "stop", "x": 1} else "invalid")


def test_the_gateway_sends_messages_and_reads_their_events(gateway: RawClient) -> None:
    accepted = gateway.ask(encode(Submit("web", "hello", "k")))
    assert isinstance(accepted, Accepted)
    assert isinstance(gateway.ask(encode(Subscribe("web", 0))), Subscribed)
    found = gateway.receive()
    assert found is not None
    assert isinstance(found[1], Event)
    assert (found[1].type, found[1].seq) == ("message.accepted", 1)


def test_one_identity_on_both_sockets_is_two_clients(service: PuppetService) -> None:
    """Each socket knows its clients by identities of their own choice."""
    wire, decoder = Wire(), Decoder[object](Subscribed | Event | Accepted)
    number = (1).to_bytes(8)
    try:
        paths = (service.places.control, service.places.gateway)
        sockets = [wire.blocking(path, "the-same-name") for path in paths]
        for each, session in zip(sockets, ("left", "right"), strict=True):
            each.send([number, encode(Subscribe(session, 0))])
            begun = each.receive(10)
            assert begun is not None
            assert isinstance(decoder.decode(begun[1]), Subscribed)
        with RawClient(service.places) as other:
            for session in ("left", "right"):
                assert isinstance(other.ask(encode(Submit(session, "hello", "k"))), Accepted)
        for each, session in zip(sockets, ("left", "right"), strict=True):
            told = each.receive(10)
            assert told is not None
            event = decoder.decode(told[1])
            assert isinstance(event, Event)
            assert event.session == session
        sockets[0].send([(2).to_bytes(8), encode(Unsubscribe(1))])
    finally:
        wire.close()


def test_every_refusal_has_a_code() -> None:
    """The default is for supervisors of an earlier version; here each place chooses one."""
    without = []
    for path in PRODUCT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_given = any(each.arg == "code" for each in node.keywords) or len(node.args) > 3
            if name == "Refused" and not is_given:
                without.append(f"{path.name}:{node.lineno}")
    assert without == []


def test_a_refusal_of_an_earlier_version_can_be_read() -> None:
    old = msgspec.msgpack.encode({"t": "refused", "error": "no", "hint": "wait"})
    assert Decoder[Refused](Refused).decode(encode(Stop())[:1] + old) == Refused("no", "wait")
