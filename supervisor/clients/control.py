"""The control sockets: a request is decoded and goes to the part that carries it out, or is refused.

`control.sock` takes every request, `gateway.sock` those of a smaller union: a gateway that is broken into can
neither end nor configure the service.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from ipc import messages as wire
from ipc.codec import Decoder
from ipc.errors import Unreadable, WireError
from ipc.server import Server
from supervisor.clients import request_checks
from supervisor.clients.changes import Changes, Reply
from supervisor.clients.subscriptions import Client
from supervisor.containment import Containment, Fault
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError

# Length of the request number, see docs/protocol.md.
_NUMBER_BYTES = 8


class Subscriptions(Protocol):
    def has_room(self, client: Client) -> bool: ...
    def subscribe(self, client: Client, request: bytes, session: str | None, after: int | None) -> None: ...
    def unsubscribe(self, client: Client, request: bytes) -> None: ...
    def forget(self, client: Client) -> None: ...


class Views(Protocol):
    def show(self, request: wire.Show, give: Callable[[wire.Table], None], failed: Failed) -> None: ...
    def stand(
        self, session: str, name: str | None, then: Callable[[int, int], None], failed: Failed
    ) -> None: ...


class Care(Protocol):
    def request_arrived(self, request: wire.Care, reply: Reply) -> None: ...


class Control:
    """The handler of one control socket; `union` are the requests that it takes."""

    def __init__(
        self,
        union: object,
        *,
        changes: Changes,
        subscriptions: Subscriptions,
        views: Views,
        care: Care,
        reload: Callable[[Reply, bool], None],
        contain: Containment,
    ):
        self._changes = changes
        self._subscriptions = subscriptions
        self._views = views
        self._care = care
        self._reload = reload
        self._serve_contained = contain.around("request", self._serve, self._not_served)
        # Subscriptions for which the journal is being asked.
        self._subscribing: set[tuple[Client, bytes]] = set()
        self._decoder: Decoder[wire.Request] = Decoder(union)
        self._every: Decoder[wire.Request] = Decoder(wire.Request)

    def open(self, socket: Server) -> None:
        self._socket = socket

    def client_left(self, identity: bytes) -> None:
        client = Client(self._socket, identity)
        self._subscribing = {each for each in self._subscribing if each[0] != client}
        self._subscriptions.forget(client)

    def request_arrived(self, parts: list[bytes]) -> None:
        """Handle [identity, request number, request]. Every fault is answered with a sentence."""
        if len(parts) != 3:
            return  # without a request number there is no one to answer
        identity, number, body = parts
        reply: Reply = partial(self._socket.answer, identity, number[:_NUMBER_BYTES])
        if len(number) != _NUMBER_BYTES:
            fault = f"a request number has {_NUMBER_BYTES} bytes"
            hint = "see docs/protocol.md for the parts of a request"
            reply(wire.Refused(fault, hint, code="invalid"))
            return
        try:
            request = self._decoder.decode(body)
        except WireError as error:
            reply(self._unread(body, error))
            return
        if isinstance(request, wire.Submit):
            reply = self._changes.counting_refusals(reply)
        self._serve_contained(identity, number, request, reply)

    def _unread(self, body: bytes, error: WireError) -> wire.Refused:
        """Tell a request that this socket does not take from one that cannot be read at all."""
        if isinstance(error, Unreadable):
            with suppress(Unreadable):
                request = self._every.decode(body)
                fault = f"{type(request).__name__} is not taken on this socket"
                return wire.Refused(fault, "use hermesctl on the host of the service", code="denied")
        return wire.Refused(error.fault, error.hint, code="invalid")

    def _not_served(
        self, fault: Fault, identity: bytes, number: bytes, request: wire.Request, reply: Reply
    ) -> None:
        reply(wire.Refused(fault.error, fault.hint, code="internal"))

    def _serve(self, identity: bytes, number: bytes, request: wire.Request, reply: Reply) -> None:
        try:
            self._carry_out(identity, number, request, reply)
        except WireError as error:  # a place that no page gave
            reply(wire.Refused(error.fault, error.hint, code="invalid"))

    def _carry_out(self, identity: bytes, number: bytes, request: wire.Request, reply: Reply) -> None:
        match request:
            case wire.Subscribe():
                self._subscribe(identity, number, request, reply)
            case wire.Unsubscribe():
                client = Client(self._socket, identity)
                self._subscribing.discard((client, request.subscription.to_bytes(8)))
                self._subscriptions.unsubscribe(client, request.subscription.to_bytes(8))
                reply(wire.Done())
            case wire.Show():
                self._views.show(request, reply, partial(_not_read, reply))
            case wire.Care():
                self._care.request_arrived(request, reply)
            case wire.Reload():
                self._reload(reply, request.confirmed)
            case _:
                self._changes.ask(request, reply)

    def _subscribe(self, identity: bytes, number: bytes, request: wire.Subscribe, reply: Reply) -> None:
        client, after = Client(self._socket, identity), request.after
        fault = request_checks.subscribe(request)
        if fault is None and not self._subscriptions.has_room(client):
            fault = wire.Refused(
                "this client has too many subscriptions", "end some of them first", code="full"
            )
        session = request.session
        if fault is not None:
            reply(fault)
        elif session is None or (after is None and not request.cursor):
            self._subscriptions.subscribe(client, number, session, after)
        else:
            self._subscribing.add((client, number))
            name = request.cursor if after is None else None
            self._views.stand(
                session,
                name,
                partial(self._subscribe_from, client, number, request, reply),
                partial(self._not_subscribed, client, number, reply),
            )

    def _not_subscribed(
        self, client: Client, number: bytes, reply: Reply, error: JournalError | WireError
    ) -> None:
        self._subscribing.discard((client, number))
        _not_read(reply, error)

    def _subscribe_from(
        self, client: Client, number: bytes, request: wire.Subscribe, reply: Reply, told: int, cursor: int
    ) -> None:
        """Subscribe after the place that the client names, if there is one, else after its cursor."""
        if (client, number) not in self._subscribing:
            return
        self._subscribing.discard((client, number))
        assert request.session is not None
        after = cursor if request.after is None else request.after
        fault = request_checks.not_told_yet(request.session, after, told)
        if fault is not None and request.after is not None:
            reply(fault)
        else:
            self._subscriptions.subscribe(client, number, request.session, after)


def _not_read(reply: Reply, error: JournalError | WireError) -> None:
    """A journal that does not answer may do so later; a place that no page gave is the client's fault."""
    code: wire.RefusalCode = "unavailable" if isinstance(error, JournalError) else "invalid"
    reply(wire.Refused(error.fault, error.hint, code=code))
