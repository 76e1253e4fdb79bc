"""`python -m worker.fetch_call`: one call of the tool fetch, in a process of its own.

In a process like a command of the agent, so that it is under the same filter: where tools have no network,
it has none either. Addresses of this host and of its private networks are refused unless the call allows
them: what listens there often trusts every caller, and a model follows what it reads.

The address is checked when the connection is made, also after a redirect, so that no name can be checked as
one address and used as another.
"""

import http.client
import ipaddress
import json
import re
import socket
import ssl
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

_SECONDS_MAX = 20.0
_REDIRECTS_MAX = 5
_BODY_BYTES_MAX = 2 * 1024 * 1024
# Some servers answer browsers only, and with some name they answer a polite program.
_NAME = "Mozilla/5.0 (compatible; hermes-fetch)"
_TEXT_TYPES = re.compile(r"text/|[^;]*[/+](?:json|xml|yaml|javascript)\b")
# Networks of IPv6 whose addresses end in one of IPv4: of NAT64, and of the older compatible form. The second
# network of NAT64 is for private use, which ipaddress knows from Python 3.13 on.
_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96")))
_PRIVATE_TRANSLATED = ipaddress.IPv6Network("64:ff9b:1::/48")
_UNREAD_TAGS = frozenset({"script", "style", "noscript", "template", "svg"})
_BLOCK_TAGS = frozenset({
    "address", "article", "blockquote", "br", "dd", "div", "dt", "footer", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "td", "th", "title", "tr",
    "ul",
})  # fmt: skip


class CallError(Exception):
    """What is wrong with the call, in words for the model."""


def fetch(url: str, private: bool) -> str:
    """Returns the text of a page, with its address and status before it."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise CallError(
            f"{url} is no address of a web page: it begins neither with http:// nor with https://"
        )
    request = urllib.request.Request(url, headers={"User-Agent": _NAME, "Accept": "text/*, */*;q=0.5"})
    try:
        with _opener(private).open(request, timeout=_SECONDS_MAX) as answer:
            return _shown(answer, answer.status)
    except urllib.error.HTTPError as error:
        with error:
            raise CallError(_shown(error, error.code)) from None
    except urllib.error.URLError as error:
        raise CallError(f"{url} cannot be fetched: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CallError(f"{url} cannot be fetched: {error or type(error).__name__}") from None


def _shown(answer: Any, status: int) -> str:
    kind = answer.headers.get("Content-Type") or "text/plain"
    head = f"[{answer.url}: status {status}, {kind}]"
    if not _TEXT_TYPES.match(kind):
        return f"{head}\n(no text: it is not shown; use a command to store it)"
    body = answer.read(_BODY_BYTES_MAX + 1)
    text = _decoded(body[:_BODY_BYTES_MAX], answer.headers.get_content_charset("utf-8"))
    if "html" in kind:
        text = _without_markup(text)
    return f"{head}\n{text}" + ("\n[… the rest was left out]" if len(body) > _BODY_BYTES_MAX else "")


def _decoded(content: bytes, charset: str) -> str:
    try:
        return content.decode(charset, errors="replace")
    except (LookupError, ValueError):  # a charset that Python does not know, or that is no text
        return content.decode(errors="replace")


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = _REDIRECTS_MAX


def _opener(private: bool) -> urllib.request.OpenerDirector:
    """With HTTP alone: urllib's own opener also reads files and FTP."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = _connect(self.host, self.port, private)

    class Secure(http.client.HTTPSConnection):
        def connect(self) -> None:
            plain = _connect(self.host, self.port, private)
            self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

    class SecureHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, req)

    opener = urllib.request.OpenerDirector()
    for handler in (
        PlainHandler(),
        SecureHandler(),
        _Redirects(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _connect(host: str, port: int, private: bool) -> socket.socket:
    failed: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not private and not _is_public(str(address[0])):
            raise ValueError(f"{host} is an address of this host or of a private network")
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(_SECONDS_MAX)
        try:
            connection.connect(address)
        except OSError as error:
            failed = error
            connection.close()
        else:
            return connection
    raise failed or OSError(f"{host} has no address")


def _is_public(address: str) -> bool:
    """False also for an IPv6 form of a private IPv4 address: a router may translate it."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.sixtofour is not None:
        # Releases of Python differ in what they say of such an address itself.
        return found.sixtofour.is_global
    if not found.is_global or found.is_multicast:
        return False
    if isinstance(found, ipaddress.IPv4Address):
        return True
    if found.is_site_local or found in _PRIVATE_TRANSLATED:
        return False
    if any(found in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(found.packed[-4:]).is_global
    return True


class _Text(HTMLParser):
    """The words of a page, a line for each block; nothing of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self._unread = 0
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD_TAGS:
            self._unread += 1
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNREAD_TAGS:
            self._unread = max(0, self._unread - 1)
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.parts.append(data)


def _without_markup(page: str) -> str:
    parser = _Text()
    parser.feed(page)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)


def main() -> int:
    call: dict[str, Any] = json.load(sys.stdin)
    try:
        result, status = fetch(call["url"], call["private"]), 0
    except CallError as error:
        result, status = f"error: {error}", 1
    sys.stdout.buffer.write(result.encode(errors="replace"))
    return status


if __name__ == "__main__":
    sys.exit(main())
