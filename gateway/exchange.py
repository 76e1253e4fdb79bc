"""One request and its answer: headers, parameters and a bounded body in, JSON or a stream out."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from gateway.errors import HttpError
from gateway.namespace import Namespace
from gateway.tokens import Token

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

# Characters that JSON writes as six (\\u0000); a body of text alone is never larger than this.
_JSON_EXPANSION = 6
_SMALL_BYTES_MAX = 64 * 1024
# Of every answer that is no page: browsers show, frame and keep nothing of it.
_API_HEADERS: Headers = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_JSON: Headers = ((b"content-type", b"application/json"),)
_Body = TypeVar("_Body")


def json_bytes_max(text_bytes: int) -> int:
    """The size of a JSON body with one text of so many bytes and a few short fields."""
    return text_bytes * _JSON_EXPANSION + 16 * 1024


class Exchange:
    """An HTTP request; every handler answers it once, or raises HttpError."""

    __slots__ = (
        "_body_type",
        "_headers",
        "_query",
        "_receive",
        "_send",
        "_type",
        "parameters",
        "scope",
        "status",
        "token",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._query: Mapping[str, str] | None = None
        # Of the path, by the names of the route's pattern.
        self.parameters: dict[str, str] = {}
        # None on the routes that need none.
        self.token: Token | None = None
        # Of the answer, once it has begun.
        self.status = 0
        # Also a WebSocket that is not accepted yet is answered like this.
        self._type = "http.response" if scope["type"] == "http" else "websocket.http.response"
        self._body_type = f"{self._type}.body"

    @property
    def is_begun(self) -> bool:
        return self.status != 0

    @property
    def namespace(self) -> Namespace:
        return Namespace(self.token.owner if self.token else "")

    @property
    def by(self) -> str:
        """The name under which the journal notes who did it."""
        return self.token.name if self.token else ""

    def headers(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self._headers if key == name]

    def header(self, name: bytes) -> str:
        """The value of a header; empty when it is missing. A header that is repeated has none."""
        found = self.headers(name)
        return found[0] if len(found) == 1 else ""

    def query(self, *known: str) -> Mapping[str, str]:
        """The parameters of the query; one that is not known is refused by its name."""
        if self._query is None:
            raw = self.scope["query_string"].decode("latin-1")
            self._query = dict(parse_qsl(raw, keep_blank_values=True))
        for name in self._query:
            if name not in known:
                takes = f"the parameters here are {', '.join(known)}" if known else "remove it"
                raise HttpError(400, f"there is no parameter {name!r} here", takes)
        return self._query

    def number(self, name: str, *known: str) -> int | None:
        """A parameter that is a number; None when it is missing."""
        value = self.query(name, *known).get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            raise HttpError(400, f"{name} is not a number: {value[:40]!r}", f"write {name}=12, say")
        return int(value)

    async def receive(self) -> dict[str, Any]:
        return await self._receive()

    async def body(self, bytes_max: int) -> bytes:
        too_large = HttpError(413, f"the body has more than {bytes_max:,} bytes", "send less at once")
        declared = self.header(b"content-length")
        if declared.isdigit() and int(declared) > bytes_max:
            raise too_large
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "the connection ended before the body did", "send it whole")
            part = message.get("body", b"")
            size += len(part)
            if size > bytes_max:
                raise too_large
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def json(
        self, kind: type[_Body], bytes_max: int = _SMALL_BYTES_MAX, default: _Body | None = None
    ) -> _Body:
        """The body as a struct; `default` stands for an empty one."""
        body = await self.body(bytes_max)
        if not body and default is not None:
            return default
        media = self.header(b"content-type").partition(";")[0].strip().lower()
        if media != "application/json":
            hint = "send JSON with the header Content-Type: application/json"
            raise HttpError(415, f"the body is {media or 'of no declared type'}, not JSON", hint)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            raise HttpError(400, f"the body is not as it should be: {error}", _fields_of(kind)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            hint = "send one JSON object in UTF-8"
            raise HttpError(400, f"the body is not JSON: {str(error)[:200]}", hint) from None

    async def answer(self, status: int, value: object, headers: Headers = ()) -> None:
        await self.answer_bytes(status, msgspec.json.encode(value), _JSON + headers)

    async def answer_bytes(self, status: int, body: bytes, headers: Headers) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self.begin(status, (*headers, length))
        await self.send_part(body, more=False)

    async def begin(self, status: int, headers: Headers) -> None:
        self.status = status
        await self._send(
            {"type": f"{self._type}.start", "status": status, "headers": [*headers, *_missing(headers)]}
        )

    def send_part(self, body: bytes, more: bool = True) -> Awaitable[None]:
        return self._send({"type": self._body_type, "body": body, "more_body": more})

    async def accept_socket(self) -> None:
        """The request is a WebSocket; the rest of its life is frames."""
        await self._receive()
        self.status = 101
        await self._send({"type": "websocket.accept"})

    async def send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def close_socket(self, code: int, reason: str) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})


def _missing(headers: Headers) -> Headers:
    """The headers of every answer that this one does not set itself."""
    own = {name for name, _ in headers}
    return tuple(header for header in _API_HEADERS if header[0] not in own)


def _fields_of(kind: type) -> str:
    names = ", ".join(field.name for field in msgspec.structs.fields(kind))
    return f"its fields are {names}"
