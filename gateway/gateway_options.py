"""The options of the gateway, as the supervisor passes them on standard input."""

import msgspec


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses, and the paths that the gateway works with.

    `listen` has an IP address and a port; port 0 lets the kernel choose one. `hosts` and `origins` are
    accepted beside the gateway's own address, `proxies` may say on whose behalf they send a request. `socket`
    is the supervisor's socket for the gateway, `token` the file with the secret of the first token.
    """

    listen: str
    socket: str
    clips: str
    tokens: str
    token: str
    proxies: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])
