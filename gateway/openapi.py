"""The description of the routes below /api in the form of OpenAPI 3.1, made from the route table."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import msgspec

from gateway.exchange import Exchange
from gateway.parts import Parts

_SCHEMAS = "#/components/schemas/"
_NUMBERS = frozenset({"limit"})
# Routes that take a form instead of the JSON body, too.
_FORMS = {
    "/api/sessions/{session}/messages": {
        "type": "object",
        "required": ["audio"],
        "properties": {"audio": {"type": "string", "format": "binary"}, "busy": {"type": "string"}},
    }
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "hint", "code"],
            "properties": {name: {"type": "string"} for name in ("message", "hint", "code")},
        }
    },
}


class Described(Protocol):
    """A row of the route table."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def right(self) -> str: ...
    @property
    def handler(self) -> Callable[[Parts, Exchange], Awaitable[None]]: ...
    @property
    def body(self) -> type | None: ...
    @property
    def query(self) -> tuple[str, ...]: ...


class Description:
    """The route of the description itself; the table that it describes is known a moment later."""

    def __init__(self) -> None:
        self._text = b""

    def describe(self, table: Iterable[Described]) -> None:
        self._text = msgspec.json.encode(description(table))

    async def get(self, parts: Parts, exchange: Exchange) -> None:
        """This description."""
        exchange.query()
        await exchange.answer_bytes(200, self._text, ((b"content-type", b"application/json"),))


def description(table: Iterable[Described]) -> dict[str, Any]:
    """Returns the description of all requests with an answer below /api; a WebSocket is none."""
    told = [route for route in table if route.path.startswith("/api/") and route.method != "WEBSOCKET"]
    bodies = [route.body for route in told if route.body is not None]
    _, schemas = msgspec.json.schema_components(bodies, ref_template=_SCHEMAS + "{name}")
    paths: dict[str, Any] = {}
    for route in told:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hermes supervisor", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Described) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "integer" if name in _NUMBERS else "string"}}
        for name in route.query
    ]
    operation: dict[str, Any] = {
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "x-right": route.right,
        "security": [] if route.right == "anyone" else [{"token": []}],
        "parameters": parameters,
        "responses": {
            "2XX": {"description": "It is done, or this is the answer."},
            "default": {
                "description": "What is wrong, and what to do.",
                "content": {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Error"}}},
            },
        },
    }
    if route.body is not None:
        kinds: dict[str, Any] = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{route.body.__name__}"}}}
        if route.path in _FORMS:
            kinds["multipart/form-data"] = {"schema": _FORMS[route.path]}
        operation["requestBody"] = {"required": True, "content": kinds}
    return operation
