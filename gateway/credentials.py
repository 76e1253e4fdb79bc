"""Credentials: the one place that reads them. A request has exactly one, in a header.

Rights come from the token's row alone; nothing in a request can add to them. A token in a URL is refused even
when it is valid, because URLs are kept: in histories, logs and Referer headers.
"""

import re
from time import monotonic
from urllib.parse import parse_qsl, unquote

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.limiter import Limiter
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
        found = exchange.headers(b"authorization")
        if not found:
            raise _unauthorized("this needs a token")
        token = self._store.find(_bearer(found[0])) if len(found) == 1 else None
        if token is None:
            self._limiter.failure(address(exchange))
            several = "there are several Authorization headers"
            raise _unauthorized("this token is not valid" if len(found) == 1 else several)
        self._limiter.request(token.id)
        self._note_use(token.id)
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


def _unauthorized(fault: str) -> HttpError:
    return HttpError(401, fault, _HINT, headers=_CHALLENGE)
