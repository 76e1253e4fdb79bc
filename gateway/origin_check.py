"""Host and Origin: which names the gateway answers to, and which pages may use it.

A page of any site can send requests to a local port, and its name can be made to resolve to 127.0.0.1 (DNS
rebinding). The browser tells the name in Host and the page in Origin. So a Host that is not the gateway's own
is refused, and so is an Origin that is another one than the Host's. Programs send no Origin. An address is
not trusted for being loopback, and names are compared whole: `127.evil.com` is no loopback address.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.gateway_options import Options


class OriginCheck:
    def __init__(self, options: Options) -> None:
        self._hosts = {host.lower() for host in options.hosts}
        self._origins = {origin.lower() for origin in options.origins}
        listen = ip_address(options.host)
        if listen.is_loopback or listen.is_unspecified:
            self._hosts |= {"localhost", "127.0.0.1", "::1"}
        if not listen.is_unspecified:
            self._hosts.add(str(listen))

    def check(self, exchange: Exchange) -> None:
        host = exchange.header(b"host").lower()
        if _name(host) not in self._hosts:
            hint = "use the gateway's own address, or add the name to [gateway] hosts in hermes.toml"
            raise HttpError(421, f"this gateway does not answer to the name {host[:200]!r}", hint)
        origins = exchange.headers(b"origin")
        if any(not self._is_ours(origin, exchange) for origin in origins):
            hint = "open the gateway's own page, or add the origin to [gateway] origins in hermes.toml"
            raise HttpError(403, f"pages of {origins[0][:200]!r} may not use this gateway", hint)

    def _is_ours(self, origin: str, exchange: Exchange) -> bool:
        return origin.lower() in self._origins or is_own_origin(origin, exchange)


def is_own_origin(origin: str, exchange: Exchange) -> bool:
    """Whether the page was served by this gateway, whose Host was checked before."""
    scheme, separator, authority = origin.lower().partition("://")
    # A proxy in front may have TLS without saying so; the names and ports are the same.
    schemes = ("https",) if exchange.scope["scheme"] in ("https", "wss") else ("http", "https")
    return scheme in schemes and bool(separator) and authority == exchange.header(b"host").lower()


def _name(host: str) -> str:
    """The host without its port; empty for what is none."""
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
        return name if parts.netloc == host and not (parts.username or parts.password) else ""
    except ValueError:
        return ""
