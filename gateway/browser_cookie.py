"""The cookie of a browser that has logged in: its name, and how it is read, set and removed.

Cookies ignore ports: two gateways on one host would overwrite each other's, so the name has the port, as the
browser knows it, from the Host header. Scripts cannot read the cookie, and it is never sent on behalf of
another site. Over TLS it has the prefix `__Host-`, with which browsers take it from this host alone.
"""

from gateway.exchange import Exchange

# As long as browsers keep a cookie. What decides is the token's row.
_LIFE_SECONDS = 400 * 24 * 3600

Header = tuple[bytes, bytes]


def values(exchange: Exchange) -> list[str]:
    """Returns what the request has under the cookie's name: one value, unless something is wrong."""
    name = _name(exchange)
    pairs = (pair.partition("=") for line in exchange.headers(b"cookie") for pair in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def setting(exchange: Exchange, secret: str) -> Header:
    return _header(exchange, secret, _LIFE_SECONDS)


def removing(exchange: Exchange) -> Header:
    return _header(exchange, "", 0)


def _header(exchange: Exchange, value: str, seconds: int) -> Header:
    secure = "; Secure" if is_secure(exchange) else ""
    cookie = f"{_name(exchange)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return b"set-cookie", cookie.encode()


def _name(exchange: Exchange) -> str:
    # The host was checked before; an IPv6 address is in brackets.
    port = exchange.header(b"host").rpartition("]")[2].partition(":")[2]
    is_over_tls = is_secure(exchange)
    if not (port.isascii() and port.isdigit()):
        port = "443" if is_over_tls else "80"
    return f"{'__Host-' * is_over_tls}hermes_{port}"


def is_secure(exchange: Exchange) -> bool:
    """Whether the browser came over TLS, to this process or to a proxy that is named in the settings."""
    return exchange.scope["scheme"] in ("https", "wss")
