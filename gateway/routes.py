"""The one table of routes: method, path, right, handler. A path that is not in it does not exist.

Every route declares the right that it needs, and `anyone` is a right too: there is no route that is open
because a check was forgotten. docs/gateway.md has the same table, and a test compares the two.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from gateway import service_api
from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.parts import Parts
from gateway.tokens import Token

# anyone: without a token. token: any valid one. The others are rights of a token.
Right = Literal["anyone", "token", "watch", "talk", "operate"]
Handler = Callable[[Parts, Exchange], Awaitable[None]]
# The method of a route that is a WebSocket.
WEBSOCKET = "WEBSOCKET"


@dataclass(frozen=True)
class Route:
    """A `{name}` in the path stands for one segment, which may hold an encoded slash (%2F)."""

    method: str
    path: str
    right: Right
    handler: Handler

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Returns the parameters of a path that fits."""
        pattern = self.path.split("/")
        if len(pattern) != len(segments):
            return None
        found = {}
        for wanted, given in zip(pattern, segments, strict=True):
            if wanted.startswith("{"):
                found[wanted.strip("{}")] = given
            elif wanted != given:
                return None
        return found


def routes() -> tuple[Route, ...]:
    return (
        Route("GET", "/health", "anyone", service_api.Health().get),
        Route("GET", "/metrics", "operate", service_api.get_metrics),
        Route("POST", "/api/pair", "anyone", service_api.post_pair),
        Route("GET", "/api/me", "token", service_api.get_me),
    )


class RouteTable:
    def __init__(self, table: tuple[Route, ...]) -> None:
        self._table = table

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]] | None:
        """Returns the route and the parameters of its path."""
        segments = _segments(raw_path)
        for route in self._table:
            if route.method == method and (parameters := route.match(segments)) is not None:
                return route, parameters
        return None

    def missing(self, raw_path: bytes) -> HttpError:
        """Returns the error for a request that no route takes."""
        segments = _segments(raw_path)
        methods = [route.method for route in self._table if route.match(segments) is not None]
        if not methods:
            return HttpError(404, "there is nothing at this path", "docs/gateway.md lists the paths")
        if methods == [WEBSOCKET]:
            hint = "connect with a WebSocket client"
            return HttpError(405, "this path is a WebSocket", hint, headers=((b"allow", b""),))
        allowed = ", ".join(method for method in methods if method != WEBSOCKET)
        hint = f"it takes {allowed}"
        headers = ((b"allow", allowed.encode()),)
        return HttpError(405, "this path does not take this method", hint, headers=headers)


def may(token: Token, right: Right) -> bool:
    """A token that may talk in its namespace may also watch it."""
    if right == "watch":
        return not token.rights.isdisjoint({"watch", "talk"})
    return right == "token" or right in token.rights


def _segments(raw_path: bytes) -> list[str]:
    """The decoded segments; an encoded slash belongs to its segment."""
    return [unquote(segment) for segment in raw_path.decode("latin-1").split("/")]
