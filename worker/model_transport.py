"""The HTTP side of a model server, which is not trusted: its responses are bounded before they are used.

The libraries below bound little. The HTTP client follows redirects with the whole conversation, and
decompresses a kilobyte into any number of megabytes. The stream decoder collects a line, or an event, without
limit. The text of an error is decoded by any codec that its header names. Therefore, on each response and
before its body is read:

- A redirect is refused, whatever its target. Neither the conversation nor the key goes to another address
  than the one in hermes.toml.
- A compressed body is refused; the request asks for none.
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
# A server's error: a sentence and a code.
_ERROR_BYTES_MAX = 256 * 1024
# An address in a sentence must be recognisable; names of hosts are shorter than this.
_ORIGIN_CHARACTERS_MAX = 100
# The ends of events, for each kind of line ending.
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


def client_options(base_url: str, bytes_max: int) -> dict[str, Any]:
    """Returns the options of an `httpx2.AsyncClient` for this server."""

    async def check(response: httpx2.Response) -> None:
        _check(response, bytes_max)

    return {
        # A server on this machine is reached without a proxy.
        "trust_env": not _is_loopback(base_url),
        "verify": _tls(),
        "follow_redirects": False,
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [check]},
    }


def refuse_cookies(client: httpx2.AsyncClient) -> None:
    """Refuses cookies, with which a server could link one session of this worker to the next."""
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))


def _check(response: httpx2.Response, bytes_max: int) -> None:
    """Checks every response after its header and before its body."""
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
            # An end may be split across two parts.
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
    """Returns scheme and host of a redirect's target; empty when it is no address."""
    try:
        target = response.url.join(response.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        return ""
    if target.scheme not in ("http", "https") or not target.host:
        return ""
    # As sent, in ASCII, and without a user and a password.
    origin = f"{target.scheme}://{target.netloc.rpartition(b'@')[2].decode('ascii', 'replace')}"
    return origin if len(origin) <= _ORIGIN_CHARACTERS_MAX else ""


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reads the certificates once, before the fork: that takes longer than a turn on loopback."""
    return httpx2.create_ssl_context()


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
