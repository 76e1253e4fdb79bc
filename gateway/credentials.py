"""Credentials: the one place that reads them. A request has exactly one: a header, or a browser's cookie.

Rights come from the token's row alone; nothing in a request can add to them. A token in a URL is refused even
when it is valid, because URLs are kept: in histories, logs and Referer headers.

A browser adds its cookie to requests of other pages too, where those are of the same site, as all ports of a
host are. So a request with the cookie that changes something, and a WebSocket, needs the gateway's own origin
in Origin, and one that reads must not come from another page. No browser adds a program's header.
"""

import re
from time import monotonic
from urllib.parse import parse_qsl, unquote

from gateway import browser_cookie
from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.limiter import Limiter
from gateway.origin_check import is_own_origin
from gateway.tokens import Token, TokenStore

_IN_URL = frozenset(
    {"token", "access_token", "api_key", "apikey", "auth", "authorization", "bearer", "secret"}
)
# As gateway/tokens.py makes them.
_SECRET = re.compile(r"hermes_[A-Za-z0-9_-]{40}")
_SECRET_CHARACTERS_MAX = 256
_CHALLENGE = ((b"www-authenticate", b'Bearer realm="hermes"'),)
_HINT = "send the header Authorization: Bearer TOKEN; `hermesctl tokens add NAME` makes one"
# The store notes a use once a minute; asking it that often is enough.
_USE_SECONDS = 60.0


class Credentials:
    def __init__(self, store: TokenStore, limiter: Limiter) -> None:
        self._store = store
        self._limiter = limiter
        self._noted_at: dict[str, float] = {}

    def check(self, exchange: Exchange) -> Token:
        """Returns the request's token, or raises HttpError. Without any credential it is no failure."""
        headers, cookies = exchange.headers(b"authorization"), browser_cookie.values(exchange)
        if not headers and not cookies:
            raise _unauthorized("this needs a token")
        if len(headers) + len(cookies) > 1:
            self._limiter.failure(address(exchange))
            raise _unauthorized("there are several credentials")
        if cookies:
            token = self._of_browser(exchange, cookies[0])
        else:
            token = self._valid(exchange, self._store.find(_bearer(headers[0])))
        self._limiter.request(token.id)
        self._note_use(token.id)
        return token

    def log_in(self, exchange: Exchange, code: str | None, secret: str | None) -> tuple[Token, str]:
        """Returns a new token for the browser, and its secret. Wrong codes count as wrong tokens do."""
        if code is not None:
            found = self._store.redeem(code[:_SECRET_CHARACTERS_MAX], is_browser=True)
            if found is None:
                self._limiter.failure(address(exchange))
                raise wrong_code()
        else:
            with_token = self._store.find((secret or "").strip()[:_SECRET_CHARACTERS_MAX])
            found = self._store.add_browser(self._valid(exchange, with_token))
        for former in browser_cookie.values(exchange):
            if (token := self._store.find_browser(former)) is not None:
                self._store.revoke(token.id)
        return found

    def _of_browser(self, exchange: Exchange, secret: str) -> Token:
        _check_page(exchange)
        token = self._store.find_browser(secret[:_SECRET_CHARACTERS_MAX])
        return self._valid(exchange, token, browser_cookie.removing(exchange))

    def _valid(self, exchange: Exchange, token: Token | None, *headers: tuple[bytes, bytes]) -> Token:
        if token is None:
            self._limiter.failure(address(exchange))
            raise _unauthorized("this token is not valid", *headers)
        return token

    def _note_use(self, id: str) -> None:
        now = monotonic()
        if now - self._noted_at.get(id, -_USE_SECONDS) >= _USE_SECONDS:
            self._noted_at[id] = now
            self._store.note_use(id)


def refuse_in_url(exchange: Exchange) -> None:
    """Refuses a URL that seems to hold a token."""
    scope = exchange.scope
    query = scope["query_string"].decode("latin-1")
    names = {name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)}
    if names & _IN_URL or _SECRET.search(unquote(query)) or _SECRET.search(scope["path"]):
        hint = "send it in the header Authorization: Bearer TOKEN, and revoke one that was in a URL"
        raise HttpError(400, "a token does not belong in a URL", hint)


def address(exchange: Exchange) -> str:
    """The address of the client; behind a named proxy the one that the proxy says."""
    client = exchange.scope.get("client")
    return str(client[0]) if client else ""


def _bearer(value: str) -> str:
    """Returns the secret in a header; empty when there is none."""
    scheme, _, secret = value.partition(" ")
    is_bearer = scheme.lower() == "bearer" and len(secret) <= _SECRET_CHARACTERS_MAX
    return secret.strip() if is_bearer else ""


def _check_page(exchange: Exchange) -> None:
    """Refuses a request that another page than the console may have made."""
    is_reading = exchange.scope["type"] == "http" and exchange.scope["method"] == "GET"
    origins = exchange.headers(b"origin")
    # Browsers send no Origin with most requests that read, but this header, which scripts cannot set.
    site = exchange.header(b"sec-fetch-site")
    if is_reading and not origins and site in ("", "same-origin", "none"):
        return
    if len(origins) != 1 or not is_own_origin(origins[0], exchange):
        hint = "use the gateway's own page; programs send the header Authorization: Bearer TOKEN"
        raise HttpError(403, "a request with the cookie of a browser comes from another page", hint)


def wrong_code() -> HttpError:
    hint = "`hermesctl pair` prints another one, valid for five minutes"
    return HttpError(401, "this pairing code is not valid", hint)


def _unauthorized(fault: str, *headers: tuple[bytes, bytes]) -> HttpError:
    return HttpError(401, fault, _HINT, headers=(*_CHALLENGE, *headers))
