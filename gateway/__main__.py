"""`python -m gateway`: reads its options from standard input, then serves until it is killed.

It reports its state to the supervisor like every service, and ends with it. SIGTERM ends the streams and what
is being answered is completed, within the time that the supervisor gives a service for its end.
"""

import asyncio
import os
import socket
import sys
from pathlib import Path
from time import monotonic

import msgspec
import uvicorn
import uvloop

from gateway.asgi import Application
from gateway.credentials import Credentials
from gateway.gateway_options import Options
from gateway.journal_pages import JournalPages
from gateway.limiter import Limiter
from gateway.open_streams import BEAT_SECONDS, OpenStreams
from gateway.openai.open_requests import OpenRequests
from gateway.openai.session_choice import SessionChoice
from gateway.origin_check import OriginCheck
from gateway.parts import Parts
from gateway.routes import RouteTable, routes
from gateway.session_feed import SessionFeeds
from gateway.supervisor_client import SupervisorClient
from gateway.tokens import TokenError, TokenStore
from gateway.traffic import Traffic
from gateway.watching import Watching
from ipc.bounds import sentence
from ipc.codec import encode
from ipc.messages import Beat, Message
from ipc.parent_death import die_with
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import Wire

_BEAT_SECONDS = 1.0
_BACKLOG = 2048
# The kernel drops a connection whose peer takes nothing for this long, and with it what waits for it here.
_STUCK_MILLISECONDS = 30_000
# Of every answer, also of uvicorn's own to what is no HTTP.
_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)
_HSTS = ("strict-transport-security", "max-age=31536000")
_LIVE_FRAME_BYTES_MAX = 64 * 1024


class CannotServe(Exception):
    """The gateway cannot start; `hint` says what to do."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.hint = hint


class Link:
    """The socket to the supervisor on which every service reports its state."""

    def __init__(self, start: ServiceStart) -> None:
        self._socket = Wire().dealer(start.endpoint, start.identity, lambda parts: None)

    def send(self, message: Message) -> None:
        self._socket.send([encode(message)])

    async def beat(self) -> None:
        while True:
            self.send(Beat())
            await asyncio.sleep(_BEAT_SECONDS)


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    die_with(start.parent_pid)
    uvloop.run(serve(start))


async def serve(start: ServiceStart) -> None:
    link = Link(start)
    link.send(ServiceState("starting"))
    try:
        options = msgspec.convert(start.options, Options)
        listener = listen(options)
        tokens = TokenStore(Path(options.tokens))
        tokens.make_first(Path(options.token))
    except (CannotServe, TokenError, msgspec.ValidationError) as error:
        hint = getattr(error, "hint", "check [gateway] in hermes.toml")
        link.send(ServiceState("failed", detail=sentence(f"it cannot start: {error}"), hint=hint))
        # An exit would drop the frame with the reason; the supervisor ends this process after reading it.
        await link.beat()
        return
    await _run(link, options, listener, tokens)


async def _run(link: Link, options: Options, listener: socket.socket, tokens: TokenStore) -> None:
    limiter = Limiter(monotonic)
    supervisor = SupervisorClient(options.socket)
    parts = Parts(
        supervisor=supervisor,
        feeds=SessionFeeds(supervisor, JournalPages(supervisor)),
        watching=Watching(supervisor),
        clips=Path(options.clips),
        tokens=tokens,
        limiter=limiter,
        credentials=Credentials(tokens, limiter),
        streams=OpenStreams(tokens),
        traffic=Traffic(),
        sessions=SessionChoice(supervisor),
        requests=OpenRequests(supervisor),
    )
    application = Application(parts, RouteTable(routes()), OriginCheck(options))
    server = _Server(_config(application, options), parts.streams)
    scheme = "https" if options.tls_cert else "http"
    host, port = listener.getsockname()[:2]
    address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    tasks = (link.beat(), parts.streams.watch(), parts.feeds.watch())
    background = [asyncio.ensure_future(task) for task in tasks]
    try:
        print(f"gateway: {address}", flush=True)
        link.send(ServiceState("ready", detail=address, address=address))
        await server.serve(sockets=[listener])
    finally:
        for task in background:
            task.cancel()
        supervisor.close()
        tokens.close()


class _Server(uvicorn.Server):
    """Ends the streams before it waits for connections to end."""

    def __init__(self, config: uvicorn.Config, streams: OpenStreams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.end_all("the gateway stops")
        await super().shutdown(sockets)


def listen(options: Options) -> socket.socket:
    """Binds the address before anything else: an address that is taken is the fault that people meet."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit both options.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STUCK_MILLISECONDS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((options.host, options.port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        fault = f"{options.listen} cannot be used: {os.strerror(error.errno or 0)}"
        raise CannotServe(fault, "choose another address for [gateway] listen in hermes.toml") from None
    return listener


def _config(application: Application, options: Options) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        loop="none",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=_LIVE_FRAME_BYTES_MAX,
        ws_per_message_deflate=False,
        ws_ping_interval=BEAT_SECONDS,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        timeout_graceful_shutdown=1,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
        headers=[*_HEADERS, *((_HSTS,) if options.tls_cert else ())],
    )


if __name__ == "__main__":
    main()
