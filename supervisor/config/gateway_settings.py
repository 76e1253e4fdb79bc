"""[gateway]: the address of the HTTP gateway, and what makes an address that others can reach safe."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from supervisor.config.fields import NEW_SERVICE, TEXT, Reading, key, maybe
from supervisor.config.toml_file import SettingsFile

OFF = "off"
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+|localhost)):(\d{1,5})")


def _read_address(value: object) -> str:
    """Accept no host names: one may mean another address tomorrow (127.evil.com)."""
    if value == OFF:
        return OFF
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError
    host = "127.0.0.1" if found[2] == "localhost" else str(ip_address(found[1] or found[2]))
    return f"[{host}]:{int(found[3])}" if ":" in host else f"{host}:{int(found[3])}"


def _read_ip(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return str(ip_address(value))


def _read_host(value: object) -> str:
    if not isinstance(value, str) or not _HOST.fullmatch(value):
        raise ValueError
    return value.lower()


def _read_origin(value: object) -> str:
    parts = urlsplit(TEXT.read(value))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.port == 0:
        raise ValueError
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _list_of(read: Callable[[object], str], wants: str) -> Reading[tuple[str, ...]]:
    def read_list(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise ValueError
        return tuple(dict.fromkeys(map(read, value)))

    return Reading(wants, read_list)


_LISTEN = Reading(
    'an address such as "127.0.0.1:8790" or "[::1]:8790", without host names, or "off"', _read_address
)
_PROXIES = _list_of(_read_ip, 'a list of addresses such as ["127.0.0.1"]')
_HOSTS = _list_of(_read_host, 'a list of host names such as ["agent.example.org"], without ports')
_ORIGINS = _list_of(_read_origin, 'a list of origins such as ["https://agent.example.org"]')


@dataclass(frozen=True)
class Gateway:
    """[gateway]: where it listens, and which proxies, hosts and origins it trusts."""

    listen: str = key("listen", _LISTEN, "127.0.0.1:8790", NEW_SERVICE)
    tls_cert: str | None = key("tls_cert", maybe(TEXT), applies=NEW_SERVICE)
    tls_key: str | None = key("tls_key", maybe(TEXT), applies=NEW_SERVICE)
    proxies: tuple[str, ...] = key("proxies", _PROXIES, [], NEW_SERVICE)
    hosts: tuple[str, ...] = key("hosts", _HOSTS, [], NEW_SERVICE)
    origins: tuple[str, ...] = key("origins", _ORIGINS, [], NEW_SERVICE)

    @property
    def is_public(self) -> bool:
        """Return whether other machines can reach it."""
        host = self.listen.rpartition(":")[0].strip("[]")
        return self.listen != OFF and not ip_address(host).is_loopback

    def console(self, address: str) -> str:
        """Return the address that a browser opens, given the one that is served; empty where that is."""
        if not address:
            return ""
        if self.hosts and self.proxies:
            return f"https://{self.hosts[0]}/"
        scheme, _, authority = address.partition("://")
        host, _, port = authority.rpartition(":")
        if self.hosts and self.is_public:
            host = self.hosts[0]
        elif ip_address(host.strip("[]")).is_unspecified:
            host = "127.0.0.1"
        return f"{scheme}://{host}:{port}/"

    def tls_file(self, name: str, settings_file: Path | None) -> Path:
        """Return the path of a TLS file; a relative one starts beside hermes.toml."""
        return (settings_file.parent if settings_file else Path()) / Path(name).expanduser()


def refuse_open_doors(source: SettingsFile, gateway: Gateway) -> None:
    """Refuse TLS files that cannot be used, and a public address that nothing protects."""
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        written = getattr(gateway, name)
        if written is None:
            continue
        path = ("gateway", name)
        if getattr(gateway, other) is None:
            raise source.error(path, f"is given without {other}", f"add {other}, or remove {name}")
        file = gateway.tls_file(written, source.path)
        try:
            file.open("rb").close()
        except OSError as error:
            fault = f"names {file}, which cannot be read: {error.strerror}"
            raise source.error(path, fault, "correct the path, or let the service's user read it") from None
    if gateway.is_public and gateway.tls_cert is None and not gateway.proxies:
        fault = f'= "{gateway.listen}" is a public address without TLS or a proxy in front of it'
        hint = "add tls_cert and tls_key, or proxies with the address of the proxy that has them"
        raise source.error(("gateway", "listen"), fault, f'{hint}, or write listen = "127.0.0.1:8790"')
