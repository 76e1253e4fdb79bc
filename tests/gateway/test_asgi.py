"""The application around a handler: what is answered, counted and logged when the handler fails."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from uvicorn.protocols.utils import ClientDisconnected

from gateway import service_api
from gateway.asgi import Application
from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.gateway_options import Options
from gateway.origin_check import OriginCheck
from gateway.parts import Parts
from gateway.routes import Route, RouteTable
from gateway.traffic import Traffic
from ipc.messages import Show, Table

_OPTIONS = Options("127.0.0.1:0", "", "", "", "")
_HOST = (b"host", b"localhost")
_WRITTEN = "what a person wrote"


class Server:
    """Runs requests to one handler; `sent` are the messages of their answers."""

    def __init__(self, handler: Callable[[Parts, Exchange], Awaitable[None]]) -> None:
        self.traffic = Traffic()
        parts = cast(Parts, SimpleNamespace(traffic=self.traffic))
        table = RouteTable((Route("GET", "/x", "anyone", handler),))
        self._application = Application(parts, table, OriginCheck(_OPTIONS))
        self.sent: list[dict[str, Any]] = []

    def get(self, *headers: tuple[bytes, bytes]) -> None:
        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)

        scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/x", "raw_path": b"/x"}
        scope |= {"query_string": b"", "headers": [*headers]}
        asyncio.run(self._application(scope, asyncio.Queue[dict[str, Any]]().get, send))

    def statuses(self) -> list[int]:
        return [each["status"] for each in self.sent if each["type"] == "http.response.start"]


async def _leaving(parts: Parts, exchange: Exchange) -> None:
    raise ClientDisconnected


async def _refusing(parts: Parts, exchange: Exchange) -> None:
    raise HttpError(404, "there is none", "look elsewhere")


async def _breaking(parts: Parts, exchange: Exchange) -> None:
    raise ValueError(_WRITTEN)


async def _answering(parts: Parts, exchange: Exchange) -> None:
    await exchange.answer(200, {})


def test_a_client_that_has_gone_is_no_failure_of_the_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(_leaving)
    server.get(_HOST)
    assert server.sent == []
    assert "answers_total{" not in server.traffic.text(0)
    assert capsys.readouterr().err == ""


def test_a_failure_is_logged_by_its_place_and_never_by_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(_breaking)
    server.get(_HOST)
    assert server.statuses() == [500]
    logged = capsys.readouterr().err
    assert "gateway: ValueError" in logged
    assert "in _breaking" in logged
    assert _WRITTEN not in logged
    assert 'answers_total{status="5xx"} 1' in server.traffic.text(0)


def test_refusals_are_counted_by_their_class() -> None:
    server = Server(_refusing)
    server.get(_HOST)
    assert server.statuses() == [404]
    assert 'answers_total{status="4xx"} 1' in server.traffic.text(0)


@pytest.mark.parametrize("broken", [_refusing, _breaking])
def test_an_answer_that_has_begun_is_not_begun_again(broken: Any) -> None:
    async def handler(parts: Parts, exchange: Exchange) -> None:
        await exchange.begin(200, ())
        await broken(parts, exchange)

    server = Server(handler)
    server.get(_HOST)
    assert server.statuses() == [200]


def test_a_request_with_two_names_of_the_gateway_is_refused() -> None:
    """A proxy may have checked the other one."""
    server = Server(_answering)
    server.get(_HOST)
    server.get(_HOST, (b"host", b"evil.example"))
    server.get((b"host", b"evil.example"), _HOST)
    assert server.statuses() == [200, 421, 421]


def test_the_supervisor_is_asked_for_its_health_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = 100.0, []
    monkeypatch.setattr(service_api, "monotonic", lambda: now)

    async def ask(request: Show, expected: type, timeout_seconds: float) -> Table:
        asked.append(request.what)
        return Table(({"state": "ready"},))

    health = service_api.Health()
    parts = cast(Parts, SimpleNamespace(supervisor=SimpleNamespace(ask=ask)))
    server = Server(lambda _, exchange: health.get(parts, exchange))
    for later, count in ((0.0, 1), (0.9, 1), (1.0, 2), (1.5, 2)):
        now = 100.0 + later
        server.get(_HOST)
        assert len(asked) == count
    assert server.statuses() == [200] * 4
