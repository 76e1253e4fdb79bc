"""Requests of clients become events or views; one that changes anything is answered after its commit."""

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

from ipc import messages as wire
from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.sockets import LoopSocket
from supervisor.core import effects, events
from supervisor.core.model import BusyMode, State
from supervisor.settings import Settings

# A message is something a person says; larger things belong in files. Far below the frame limit, so history
# fits too.
TEXT_BYTES_MAX = 1024 * 1024
SESSION_NAME_MAX = 200

Reply = Callable[[wire.Answer], None]


class Engine(Protocol):
    @property
    def state(self) -> State: ...
    def post(self, event: events.Event, answer: Callable[[effects.Answer], None] | None = None) -> None: ...


class Feed(Protocol):
    def follow(self, identity: bytes, request: bytes, session: str | None, after: int | None) -> None: ...
    def unfollow(self, identity: bytes, request: bytes) -> None: ...


class Views(Protocol):
    def show(self, request: wire.Show) -> tuple[dict[str, Any], ...]: ...
    def queue(self, session: str) -> tuple[dict[str, Any], ...]: ...


class Control:
    """The door on the control socket."""

    def __init__(
        self, *, engine: Engine, feed: Feed, views: Views, settings: Settings, stop: Callable[[], None]
    ):
        self._engine = engine
        self._feed = feed
        self._views = views
        self._settings = settings
        self._stop = stop
        self._decoder: Decoder[wire.Request] = Decoder(wire.Request)

    def open(self, socket: LoopSocket) -> None:
        self._socket = socket

    def request_arrived(self, parts: list[bytes]) -> None:
        """[identity, request number, request]. Whatever is wrong with it is answered in a sentence."""
        if len(parts) != 3:
            return  # without a request number there is nobody to answer
        identity, number, body = parts

        def reply(answer: wire.Answer) -> None:
            self._socket.send([identity, number, encode(answer)])

        try:
            request = self._decoder.decode(body)
        except WireError as error:
            reply(wire.Refused(error.fault, error.hint))
            return
        match request:
            case wire.Follow():
                self._feed.follow(identity, number, request.session, request.after)
            case wire.Unfollow():
                self._feed.unfollow(identity, request.follow.to_bytes(8))
                reply(wire.Done())
            case wire.Show():
                reply(wire.Table(self._views.show(request)))
            case _:
                self._change(request, reply)

    def _change(self, request: wire.Submit | wire.Interrupt | wire.Queue | wire.Stop, reply: Reply) -> None:
        fault = _fault(request)
        if fault is not None:
            reply(fault)
            return
        match request:
            case wire.Submit():
                self._submit(request, reply)
            case wire.Interrupt(session=None):
                self._interrupt_all(request, reply)
            case wire.Interrupt(session=str(session)):
                event = events.InterruptAsked(session, request.by, request.expect_turn, request.drop)
                self._engine.post(event, _answering(reply))
            case wire.Queue():
                self._queue(request, reply)
            case wire.Stop():
                self._engine.post(events.StopAsked(), _answering(reply, then=self._stop))

    def _submit(self, request: wire.Submit, reply: Reply) -> None:
        event = events.TextArrived(
            session=request.session,
            message=message_id(request.session, request.key),
            key=request.key,
            text=request.text,
            busy=BusyMode(request.busy or self._settings.for_session(request.session).busy),
            expect_turn=request.expect_turn,
        )
        self._engine.post(event, _answering(reply))

    def _interrupt_all(self, request: wire.Interrupt, reply: Reply) -> None:
        """Each session is interrupted on its own; one answer when the last has been."""
        names = [name for name, session in self._engine.state.sessions.items() if session.turn is not None]
        if not names:
            reply(wire.Done(note="nothing runs"))
        turns: list[str] = []
        left = set(names)

        def one_done(name: str, answer: effects.Answer) -> None:
            left.discard(name)
            if isinstance(answer, effects.Carried):
                turns.extend(answer.turns)
            if not left:
                reply(wire.Done(tuple(turns)))

        for name in names:
            event = events.InterruptAsked(name, request.by, drop=request.drop)
            self._engine.post(event, lambda answer, name=name: one_done(name, answer))  # type: ignore[misc]

    def _queue(self, request: wire.Queue, reply: Reply) -> None:
        match request.act:
            case "list":
                reply(wire.Table(self._views.queue(request.session)))
            case "drop":
                event = events.DropAsked(request.session, request.message or "", "hermesctl")
                self._engine.post(event, _answering(reply))
            case "clear":
                self._engine.post(events.DropAsked(request.session, None, "hermesctl"), _answering(reply))
            case "resume":
                self._engine.post(events.ResumeAsked(request.session), _answering(reply))


def message_id(session: str, key: str) -> str:
    """The same key in the same session is the same message, in this life and every later one."""
    digest = hashlib.blake2b(f"{session}\0{key}".encode(), digest_size=10)
    return f"m_{digest.hexdigest()}"


def _fault(request: wire.Submit | wire.Interrupt | wire.Queue | wire.Stop) -> wire.Refused | None:
    """What is wrong with a request before any rule is asked."""
    name = None if isinstance(request, wire.Stop) else request.session
    if name is not None and not (
        0 < len(name) <= SESSION_NAME_MAX and name.isprintable() and name.strip() == name
    ):
        error = f"a session's name has 1 to {SESSION_NAME_MAX} printable characters and no space at its ends"
        return wire.Refused(error, "choose another name, for example demo or telegram:42")
    if isinstance(request, wire.Submit):
        size = len(request.text.encode())
        if size > TEXT_BYTES_MAX:
            error = f"the message is {size} bytes, the limit is {TEXT_BYTES_MAX}"
            return wire.Refused(error, "put the large part in a file and name the file in the message")
        if not request.text.strip():
            return wire.Refused(
                "the message is empty", "say something, or use `hermesctl interrupt` to stop a turn"
            )
        if not 0 < len(request.key) <= SESSION_NAME_MAX:
            return wire.Refused(
                "the message's key is empty or too long", f"use 1 to {SESSION_NAME_MAX} characters"
            )
    return None


def _answering(reply: Reply, then: Callable[[], None] | None = None) -> Callable[[effects.Answer], None]:
    """Turns the rules' answer into the wire's."""

    def give(answer: effects.Answer) -> None:
        match answer:
            case effects.Taken():
                reply(wire.Accepted(answer.message, answer.seq, answer.again))
            case effects.Carried():
                reply(wire.Done(answer.turns, answer.note))
            case effects.Denied():
                reply(wire.Refused(answer.error, answer.hint, answer.retry_after_seconds))
        if then is not None:
            then()

    return give
