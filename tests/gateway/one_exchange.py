"""A request to one handler, without a server: what the handler asks the supervisor, and what it answers."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from types import SimpleNamespace
from typing import Any, cast

from gateway.exchange import Exchange
from gateway.limiter import Limiter
from gateway.parts import Parts
from gateway.tokens import Token
from ipc.messages import Request

ANNA = Token("t_1", "phone", "anna", frozenset({"talk", "watch"}))
JSON = (b"content-type", b"application/json")


class Asked:
    """A supervisor that gives these answers in order, with feeds of any session."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.required: list[str] = []
        self.closed = 0

    async def ask(self, request: Request, expected: type, *_: float) -> Any:
        self.requests.append(request)
        return self._answers.pop(0)

    async def rows(self, request: Request) -> list[dict[str, Any]]:
        return list((await self.ask(request, object)).rows)

    async def require(self, session: str) -> None:
        self.required.append(session)

    async def open(self, *_: object) -> "Asked":
        return self

    def close(self) -> None:
        self.closed += 1

    @property
    def parts(self) -> Parts:
        limiter = Limiter(lambda: 0.0)
        return cast(Parts, SimpleNamespace(supervisor=self, feeds=self, limiter=limiter, clips=None))


def exchange_of(
    body: object = None,
    query: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
    scheme: str = "http",
    *parts: bytes,
) -> tuple[Exchange, list[dict[str, Any]]]:
    """A request of anna with that body, in JSON or in these parts, and the messages of its answer."""
    pieces = list(parts) or [b"" if body is None else json.dumps(body).encode()]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        part = pieces.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(pieces) or bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "scheme": scheme, "path": "/x", "query_string": query, "headers": [*headers]}
    exchange = Exchange(scope, receive, send)
    exchange.token = ANNA
    return exchange, sent


def answered(
    handler: Callable[[Parts, Exchange], Coroutine[Any, Any, None]],
    supervisor: Asked,
    body: object = None,
    query: bytes = b"",
    **parameters: str,
) -> Any:
    """The JSON of the answer to one request."""
    headers = (JSON, (b"idempotency-key", b"k"))
    exchange, sent = exchange_of(body, query, headers)
    exchange.parameters = parameters
    asyncio.run(handler(supervisor.parts, exchange))
    return json.loads(b"".join(message.get("body", b"") for message in sent))
