"""The HTTP side of a model server, which is not trusted: what it sends is bounded before it is used.

The libraries below bound little. The HTTP client follows redirects with the whole conversation, and unpacks a
kilobyte into as many megabytes as its sender likes. The stream decoder collects a line, or an event, without
end. The text of an error is decoded by whatever codec its header names. Therefore, on each response and
before its body is read:

- A redirect is refused, whatever it leads to. Neither the conversation nor the key goes to another address
  than the one in hermes.toml.
- A body that is packed is refused; none is asked for.
- The body is counted: all of it, and each event of it. The header is bounded by the HTTP parser (100 KiB),
  the wait for its end by the caller.
- Text is UTF-8.
"""

import functools
import ipaddress
import ssl
from collections.abc import AsyncIterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpx2

from worker import model_faults as faults
from worker.model_faults import Misbehaviour

# One event holds one token or one call's arguments; a longer one is not of a chat stream.
_EVENT_BYTES_MAX = 4 * 1024 * 1024
# What a server says instead of an answer: a sentence and a code.
_ERROR_BYTES_MAX = 256 * 1024
# An address in a sentence is to be recognised; names of hosts are shorter than this.
_ORIGIN_CHARACTERS_MAX = 100
# How events end, in each of the ways that lines may.
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


def client_options(base_url: str, bytes_max: int) -> dict[str, Any]:
    """What an `httpx2.AsyncClient` for this server is made with."""

    async def check(response: httpx2.Response) -> None:
        _check(response, bytes_max)

    return {
        # A proxy for the world is no way to a server on this machine.
        "trust_env": not _is_loopback(base_url),
        "verify": _tls(),
        "follow_redirects": False,
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [check]},
    }


def refuse_cookies(client: httpx2.AsyncClient) -> None:
    """A server cannot tell one session of this worker from the next by what it stored with the one before."""
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))


def _check(response: httpx2.Response, bytes_max: int) -> None:
    """For every response, when its header was read and nothing of its body."""
    if 300 <= response.status_code < 400:
        target = _origin(response)
        raise Misbehaviour(lambda endpoint: faults.redirected(endpoint, response.status_code, target))
    encodings = response.headers.get("content-encoding", "").lower()
    if encodings.strip() not in ("", "identity"):
        raise Misbehaviour(faults.packed)
    response.encoding = "utf-8"
    is_error = response.status_code >= 400
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, _ERROR_BYTES_MAX if is_error else bytes_max)


class _Bounded(httpx2.AsyncByteStream):
    """A response body that ends in an error when it, or one event of it, grows too large."""

    def __init__(self, body: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._body = body
        self._bytes_left = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event, tail = 0, b""
        async for part in self._body:
            self._bytes_left -= len(part)
            # An end may lie across two parts.
            seen = tail + part
            end = max(seen.rfind(sign) for sign in _EVENT_ENDS)
            event = event + len(part) if end < 0 else len(seen) - end
            tail = seen[-3:]
            if self._bytes_left < 0 or event > _EVENT_BYTES_MAX:
                raise Misbehaviour(faults.too_large)
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


def _origin(response: httpx2.Response) -> str:
    """Scheme and host of where a redirect leads; nothing when that is no address."""
    try:
        target = response.url.join(response.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        return ""
    if target.scheme not in ("http", "https") or not target.host:
        return ""
    # As it goes over the wire, in ASCII, and without a user and a password.
    origin = f"{target.scheme}://{target.netloc.rpartition(b'@')[2].decode('ascii', 'replace')}"
    return origin if len(origin) <= _ORIGIN_CHARACTERS_MAX else ""


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes longer than a turn on loopback: once, before the fork."""
    return httpx2.create_ssl_context()


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
