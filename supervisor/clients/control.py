"""Requests of clients become events or queries; one that changes anything is answered after its commit."""

import hashlib
from collections.abc import Callable
from typing import Protocol

from ipc import messages as wire
from ipc import paging
from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.server import Server
from supervisor.clients import request_checks, scaling
from supervisor.clients.interrupts import Interrupts, Outcome, answer_to
from supervisor.config.live import Live
from supervisor.containment import Containment, Fault
from supervisor.core import effects, events
from supervisor.core.state import BusyMode, session_of
from supervisor.event_sink import RequestSink, Trouble

# Length of the request number, see docs/protocol.md.
_NUMBER_BYTES = 8
# The journal is retried by itself; a client that retries this often is served soon after there is space.
_NO_ROOM_RETRY_SECONDS = 5.0

Reply = Callable[[wire.Answer], None]
_Scaling = wire.Drain | wire.Undrain | wire.Scale
_Saying = wire.Submit | wire.Interrupt | wire.Queue | wire.Respond | wire.Retry | wire.Seen
_Change = _Saying | _Scaling | wire.HandOver | wire.Stop


class Subscriptions(Protocol):
    def has_room(self, identity: bytes) -> bool: ...
    def subscribe(self, identity: bytes, request: bytes, session: str | None, after: int | None) -> None: ...
    def unsubscribe(self, identity: bytes, request: bytes) -> None: ...


class Views(Protocol):
    def show(self, request: wire.Show) -> wire.Table: ...
    def queue(self, session: str, after: str) -> wire.Table: ...
    def asked_of(self, turn: str) -> tuple[str, str, tuple[str, ...]] | None: ...
    def clip_of(self, message: str) -> tuple[str, str, str] | None: ...
    def cursor(self, session: str, name: str) -> int: ...
    def told(self, session: str) -> int: ...


class Care(Protocol):
    def request_arrived(self, request: wire.Care, reply: Reply) -> None: ...


class Control:
    """The handler of the control socket."""

    def __init__(
        self,
        *,
        engine: RequestSink,
        interrupts: Interrupts,
        trouble: Callable[[], Trouble | None],
        subscriptions: Subscriptions,
        views: Views,
        care: Care,
        clip_fault: Callable[[str], tuple[str, str] | None],
        live: Live,
        reload: Callable[[Reply, bool], None],
        after_frames: Callable[[Callable[[], None]], None],
        stop: Callable[[], None],
        hand_over: Callable[[Reply], None],
        refused: Callable[[], None],
        contain: Containment,
    ):
        """`trouble` says why no message can be accepted; `refused` is called for each refused message."""
        self._engine = engine
        self._interrupts = interrupts
        self._trouble = trouble
        self._subscriptions = subscriptions
        self._views = views
        self._care = care
        self._clip_fault = clip_fault
        self._live = live
        self._reload = reload
        self._after_frames = after_frames
        self._stop = stop
        self._hand_over = hand_over
        self._refused = refused
        self._contain = contain
        self._serve_contained = contain.around("request", self._serve, self._not_served)
        self._decoder: Decoder[wire.Request] = Decoder(wire.Request)

    def open(self, socket: Server) -> None:
        self._socket = socket

    def request_arrived(self, parts: list[bytes]) -> None:
        """Handle [identity, request number, request]. Every fault is answered with a sentence."""
        if len(parts) != 3:
            return  # without a request number there is no one to answer
        identity, number, body = parts
        request: wire.Request | None = None

        def reply(answer: wire.Answer) -> None:
            if isinstance(answer, wire.Refused) and isinstance(request, wire.Submit):
                self._refused()
            self._socket.send([identity, number, encode(answer)])

        if len(number) != _NUMBER_BYTES:
            number = number[:_NUMBER_BYTES]
            fault = f"a request number has {_NUMBER_BYTES} bytes"
            reply(wire.Refused(fault, "see docs/protocol.md for the parts of a request"))
            return
        try:
            request = self._decoder.decode(body)
        except WireError as error:
            reply(wire.Refused(error.fault, error.hint))
        else:
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
                self._change(request, reply)

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

    def _change(self, request: _Change, reply: Reply) -> None:
        fault = request_checks.change(request) or self._no_room(request)
        if fault is not None:
            reply(fault)
            return
        match request:
            case wire.Submit(clip=str(clip)) if clip:
                self._submit_clip(request, reply)
            case wire.Submit():
                self._submit(request, reply)
            case wire.Interrupt():
                self._interrupt(request, reply)
            case wire.Queue():
                self._queue(request, reply)
            case wire.Respond():
                session = session_of(request.question)
                answer = events.AnswerArrived(session, request.question, request.text, request.by)
                self._engine.post(answer, self._answering(reply))
            case wire.Seen():
                seen = events.EventsSeen(request.session, request.cursor, request.seq)
                self._engine.post(seen, self._answering(reply))
            case wire.Retry() if "/" not in request.turn:  # the id of a message; turns are SESSION/N
                self._retry_clip(request, reply)
            case wire.Retry():
                self._retry(request, reply)
            case wire.Drain():
                self._engine.post(events.DrainAsked(), self._answering(reply))
            case wire.Undrain():
                self._engine.post(events.UndrainAsked(), self._answering(reply))
            case wire.Scale():
                self._scale(request, reply)
            case wire.HandOver():
                self._hand_over(reply)
            case wire.Stop() if self._engine.trouble is not None:
                reply(wire.Done(note="stopping; what is in the journal stands"))
                self._stop()
            case wire.Stop():
                ending = self._answering(reply, then=self._stop)
                self._after_frames(lambda: self._engine.post(events.StopAsked(), ending))

    def _no_room(self, request: _Change) -> wire.Refused | None:
        """Refuse while the journal cannot be written; queries, interrupts and stop need no commit."""
        trouble = self._trouble()
        if trouble is None or isinstance(request, wire.Stop | wire.Interrupt):
            return None
        if isinstance(request, wire.Queue) and request.act == "list":
            return None
        return wire.Refused(trouble.error, trouble.hint, _NO_ROOM_RETRY_SECONDS)

    def _submit(self, request: wire.Submit, reply: Reply, retries: str = "") -> None:
        event = events.TextArrived(
            session=request.session,
            message=message_id(request.session, request.key),
            key=request.key,
            text=request.text,
            busy=BusyMode(request.busy or self._live.settings.for_session(request.session).busy),
            expect_turn=request.expect_turn,
            retries=retries,
        )
        self._engine.post(event, self._answering(reply))

    def _submit_clip(self, request: wire.Submit, reply: Reply) -> None:
        """The sender has stored the clip; from here on it is kept until its transcript is ready."""
        if fault := self._clip_fault(request.clip):
            reply(wire.Refused(*fault))
            return
        event = events.VoiceArrived(
            session=request.session,
            message=message_id(request.session, request.key),
            key=request.key,
            clip=request.clip,
            busy=BusyMode(request.busy or self._live.settings.for_session(request.session).busy),
            expect_turn=request.expect_turn,
        )
        self._engine.post(event, self._answering(reply))

    def _retry_clip(self, request: wire.Retry, reply: Reply) -> None:
        """Its transcript is not known yet, so it takes the busy mode of any clip."""
        found = self._views.clip_of(request.turn)
        if found is None or found[1] != "failed":
            state = f"is {found[1]}" if found else "is not known"
            hint = "only a clip whose transcript failed is retried; see `hermesctl why MESSAGE`"
            reply(wire.Refused(f"message {request.turn} {state}", hint))
            return
        session, _, clip = found
        self._submit_clip(wire.Submit(session, "", request.key, busy="queue", clip=clip), reply)

    def _retry(self, request: wire.Retry, reply: Reply) -> None:
        """Submit the messages of a failed or interrupted turn again, in order, behind whatever waits."""
        found = self._views.asked_of(request.turn)
        if found is None or found[1] not in ("failed", "interrupted"):
            state = f"is {found[1]}" if found else "is not known"
            hint = "only a failed or interrupted turn is retried; see `hermesctl turns`"
            reply(wire.Refused(f"turn {request.turn} {state}", hint))
            return
        session, _, texts = found
        text = "\n\n".join(texts)
        if fault := request_checks.text(text):
            reply(fault)
            return
        self._submit(wire.Submit(session, text, request.key, busy="queue"), reply, retries=request.turn)

    def _interrupt(self, request: wire.Interrupt, reply: Reply) -> None:
        """Interrupt each session on its own; answer once, after the last."""
        sessions = self._engine.state.sessions
        running = [name for name, session in sessions.items() if session.turn is not None]
        names = running if request.session is None else [request.session]
        if not names:
            reply(wire.Done(note="nothing runs"))
        outcomes: list[Outcome] = []

        def one_done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(names):
                reply(answer_to(outcomes))

        def failed(fault: Fault, outcome: Outcome) -> None:
            reply(wire.Refused(fault.error, fault.hint))

        for name in names:
            expect = request.expect_turn if request.session is not None else None
            asked = events.InterruptAsked(name, request.by, expect, request.drop)
            self._interrupts.ask(asked, self._contain.around("request", one_done, failed))

    def _scale(self, request: wire.Scale, reply: Reply) -> None:
        if request == wire.Scale():
            reply(wire.Done(note=scaling.present(self._engine.state.policy.busy_seats)))
            return
        seats = scaling.seats_asked(request)
        if isinstance(seats, wire.Refused):
            reply(seats)
        else:
            self._engine.post(events.ScaleAsked(seats), self._answering(reply))

    def _queue(self, request: wire.Queue, reply: Reply) -> None:
        match request.act:
            case "list":
                reply(self._views.queue(request.session, request.after))
            case "drop":
                event = events.DropAsked(request.session, request.message or "", "hermesctl")
                self._engine.post(event, self._answering(reply))
            case "clear":
                self._engine.post(
                    events.DropAsked(request.session, None, "hermesctl"), self._answering(reply)
                )
            case "resume":
                self._engine.post(events.ResumeAsked(request.session), self._answering(reply))

    def _answering(
        self, reply: Reply, then: Callable[[], None] | None = None
    ) -> Callable[[effects.Answer], None]:
        """Translate the core's answer to the wire."""

        def give(answer: effects.Answer) -> None:
            match answer:
                case effects.Accepted():
                    reply(wire.Accepted(answer.message, answer.seq, answer.again, answer.note))
                case effects.Done():
                    reply(paging.done(answer.turns, answer.note))
                case effects.Refused():
                    reply(wire.Refused(answer.error, answer.hint, answer.retry_after_seconds))
            if then is not None:
                then()

        def failed(fault: Fault, answer: effects.Answer) -> None:
            reply(wire.Refused(fault.error, fault.hint))

        return self._contain.around("request", give, failed)


def message_id(session: str, key: str) -> str:
    """The same key in the same session is the same message, in every epoch."""
    digest = hashlib.blake2b(f"{session}\0{key}".encode(), digest_size=10)
    return f"m_{digest.hexdigest()}"
