"""The control socket: a request is decoded and goes to the part that carries it out, or is refused."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from ipc import messages as wire
from ipc.codec import Decoder
from ipc.errors import WireError
from ipc.server import Server
from supervisor.clients import request_checks
from supervisor.clients.changes import Changes, Reply
from supervisor.containment import Containment, Fault

# Length of the request number, see docs/protocol.md.
_NUMBER_BYTES = 8


class Subscriptions(Protocol):
    def has_room(self, identity: bytes) -> bool: ...
    def subscribe(self, identity: bytes, request: bytes, session: str | None, after: int | None) -> None: ...
    def unsubscribe(self, identity: bytes, request: bytes) -> None: ...


class Views(Protocol):
    def show(self, request: wire.Show) -> wire.Table: ...
    def cursor(self, session: str, name: str) -> int: ...
    def told(self, session: str) -> int: ...


class Care(Protocol):
    def request_arrived(self, request: wire.Care, reply: Reply) -> None: ...


class Control:
    """The handler of the control socket."""

    def __init__(
        self,
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
        self._decoder: Decoder[wire.Request] = Decoder(wire.Request)

    def open(self, socket: Server) -> None:
        self._socket = socket

    def request_arrived(self, parts: list[bytes]) -> None:
        """Handle [identity, request number, request]. Every fault is answered with a sentence."""
        if len(parts) != 3:
            return  # without a request number there is no one to answer
        identity, number, body = parts
        reply: Reply = partial(self._socket.answer, identity, number[:_NUMBER_BYTES])
        if len(number) != _NUMBER_BYTES:
            fault = f"a request number has {_NUMBER_BYTES} bytes"
            reply(wire.Refused(fault, "see docs/protocol.md for the parts of a request"))
            return
        try:
            request = self._decoder.decode(body)
        except WireError as error:
            reply(wire.Refused(error.fault, error.hint))
            return
        if isinstance(request, wire.Submit):
            reply = self._changes.counting_refusals(reply)
        self._serve_contained(identity, number, request, reply)

    def _not_served(
        self, fault: Fault, identity: bytes, number: bytes, request: wire.Request, reply: Reply
    ) -> None:
        reply(wire.Refused(fault.error, fault.hint))

    def _serve(self, identity: bytes, number: bytes, request: wire.Request, reply: Reply) -> None:
        try:
            self._carry_out(identity, number, request, reply)
        except WireError as error:  # a place that no page gave
            reply(wire.Refused(error.fault, error.hint))

    def _carry_out(self, identity: bytes, number: bytes, request: wire.Request, reply: Reply) -> None:
        match request:
            case wire.Subscribe():
                self._subscribe(identity, number, request, reply)
            case wire.Unsubscribe():
                self._subscriptions.unsubscribe(identity, request.subscription.to_bytes(8))
                reply(wire.Done())
            case wire.Show():
                reply(self._views.show(request))
            case wire.Care():
                self._care.request_arrived(request, reply)
            case wire.Reload():
                self._reload(reply, request.confirmed)
            case _:
                self._changes.ask(request, reply)

    def _subscribe(self, identity: bytes, number: bytes, request: wire.Subscribe, reply: Reply) -> None:
        after = request.after
        fault = request_checks.subscribe(request)
        if fault is None and not self._subscriptions.has_room(identity):
            fault = wire.Refused("this client has too many subscriptions", "end some of them first")
        if fault is None and request.session is not None and after is not None:
            fault = request_checks.not_told_yet(request.session, after, self._views.told(request.session))
        if fault is not None:
            reply(fault)
            return
        if request.cursor and request.session is not None and after is None:
            after = self._views.cursor(request.session, request.cursor)
        self._subscriptions.subscribe(identity, number, request.session, after)
