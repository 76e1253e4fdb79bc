"""Requests of clients that change something become events, and are answered after the commit."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ipc import messages as wire
from ipc import paging
from ipc.errors import WireError
from supervisor.clients import beginnings, host_requests, request_checks, scaling
from supervisor.clients.beginnings import beginning
from supervisor.clients.interrupts import Interrupts, Outcome, answer_to
from supervisor.config.live import Live
from supervisor.containment import Containment, Fault
from supervisor.core import effects, events
from supervisor.core.state import BusyMode, session_of
from supervisor.event_sink import RequestSink, Trouble
from supervisor.journal.asking import Asking, Failed
from supervisor.journal.errors import JournalError
from supervisor.journal.ownership import Found, Here, Ownership
from supervisor.journal.reader import AskedOf

# The journal is retried by itself; a client that retries this often is served soon after there is space.
_NO_ROOM_RETRY_SECONDS = 5.0

_MOVED_RETRY_SECONDS = 1.0

Reply = Callable[[wire.Answer], None]
Route = Callable[["Change", Reply, Callable[[], None] | None], None]
_Scaling = wire.Drain | wire.Undrain | wire.Scale
_Saying = wire.Submit | wire.Begin | wire.Interrupt | wire.Queue | wire.Respond | wire.Retry | wire.Seen
Change = _Saying | wire.Transcribe | _Scaling | wire.HandOver | wire.Stop


class Views(Protocol):
    def queue(self, session: str, after: str, give: Callable[[wire.Table], None], failed: Failed) -> None: ...


class Past(beginnings.Past, Protocol):
    def clip_of(self, message: str) -> tuple[str, str, str] | None: ...


class Changes:
    """Requests for a change of the state, or for the end of the process."""

    def __init__(
        self,
        *,
        engine: RequestSink,
        interrupts: Interrupts,
        trouble: Callable[[], Trouble | None],
        views: Views,
        past: Past,
        asking: Asking,
        clip_fault: Callable[[str], tuple[str, str] | None],
        transcribe: Callable[[str, str, Reply], None],
        live: Live,
        after_frames: Callable[[Callable[[], None]], None],
        stop: Callable[[], None],
        hand_over: Callable[[Reply], None],
        refused: Callable[[], None],
        contain: Containment,
        owners: Ownership | None = None,
    ):
        """`trouble` says why no message can be accepted; `refused` is called for each refused message."""
        self._engine = engine
        self._interrupts = interrupts
        self._trouble = trouble
        self._views = views
        self._past = past
        self._asking = asking
        self._clip_fault = clip_fault
        self._transcribe = transcribe
        self._live = live
        self._after_frames = after_frames
        self._stop = stop
        self._hand_over = hand_over
        self._refused = refused
        self._contain = contain
        self._owners = owners
        self._route: Route | None = None

    def counting_refusals(self, reply: Reply) -> Reply:
        """Return the reply to a message."""

        def counting(answer: wire.Answer) -> None:
            if isinstance(answer, wire.Refused):
                self._refused()
            reply(answer)

        return counting

    def open(self, route: Route) -> None:
        """Other hosts have sessions, too: `route` has each request carried out where its session is."""
        self._route = route

    def ask(self, request: Change, reply: Reply, moved: Callable[[], None] | None = None) -> None:
        """Post the event that the request means; it is answered at once only when it changes nothing.

        `moved` is called instead of the reply when another host, which has sent it, has to look again.
        """
        agents = self._live.settings.agents
        fault = request_checks.change(request, agents) or self._no_room(request)
        if fault is not None:
            reply(fault)
        elif self._route is None:
            self._carry_out(request, reply)
        else:
            self._route(request, reply, moved)

    def carry_out(self, request: Change, reply: Reply) -> None:
        """Carry out a request about a session that is here."""

        def failed(fault: Fault) -> None:
            reply(wire.Refused(fault.error, fault.hint, code="internal"))

        self._contain.around("request", partial(self._carry_out, request, reply), failed)()

    def _at_owner(self, session: str, reply: Reply, act: Callable[[], None]) -> None:
        """Act if the session is still here; `act` posts the event at once."""

        def found(where: Found) -> None:
            if isinstance(where, Here):
                act()
            else:
                fault = f"session {session} has just moved to another host"
                reply(wire.Refused(fault, "send it again", _MOVED_RETRY_SECONDS, "unavailable"))

        if self._owners is None:
            act()
        else:
            self._owners.claim(session, found, partial(_not_read, reply))

    def _carry_out(self, request: Change, reply: Reply) -> None:
        match request:
            case wire.Submit(clip=str(clip)) if clip:
                self._submit_clip(request, reply)
            case wire.Submit():
                self._submit(request, reply)
            case wire.Begin():
                self._begin(request, reply)
            case wire.Transcribe():
                self._transcribe_apart(request, reply)
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
            case wire.Drain() | wire.Undrain() if request.host not in (
                "",
                self._live.settings.hosts.own_name,
            ):
                host_requests.ask(self._owners, request, reply)
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

    def _no_room(self, request: Change) -> wire.Refused | None:
        """Refuse while the journal cannot be written; queries, interrupts and stop need no commit."""
        trouble = self._trouble()
        if trouble is None or isinstance(request, wire.Stop | wire.Interrupt | wire.Transcribe):
            return None
        if isinstance(request, wire.Queue) and request.act == "list":
            return None
        return wire.Refused(trouble.error, trouble.hint, _NO_ROOM_RETRY_SECONDS, "unavailable")

    def _submit(self, request: wire.Submit, reply: Reply, retries: str = "") -> None:
        event = events.TextArrived(
            session=request.session,
            message=message_id(request.session, request.key),
            key=request.key,
            text=request.text,
            busy=BusyMode(request.busy or self._live.settings.for_session(request.session).busy),
            expect_turn=request.expect_turn,
            retries=retries,
            by=request.by,
            agent=request.agent,
            instructions=request.instructions,
        )
        self._engine.post(event, self._answering(reply))

    def _begin(self, request: wire.Begin, reply: Reply) -> None:
        def found(asked: events.BeginAsked | wire.Refused) -> None:
            if isinstance(asked, wire.Refused):
                reply(asked)
            else:
                post = partial(self._engine.post, asked, self._answering(reply))
                self._at_owner(request.session, reply, post)

        self._asking.ask(lambda: beginning(request, self._past), found, partial(_not_read, reply))

    def _submit_clip(self, request: wire.Submit, reply: Reply) -> None:
        """The sender has stored the clip; from here on it is kept until its transcript is ready."""
        if fault := self._clip_fault(request.clip):
            reply(wire.Refused(*fault, code="invalid"))
            return
        event = events.VoiceArrived(
            session=request.session,
            message=message_id(request.session, request.key),
            key=request.key,
            clip=request.clip,
            busy=BusyMode(request.busy or self._live.settings.for_session(request.session).busy),
            expect_turn=request.expect_turn,
            by=request.by,
            agent=request.agent,
            instructions=request.instructions,
        )
        self._engine.post(event, self._answering(reply))

    def _retry_clip(self, request: wire.Retry, reply: Reply) -> None:
        """Its transcript is not known yet, so it takes the busy mode of any clip."""
        read = partial(self._past.clip_of, request.turn)
        self._asking.ask(read, partial(self._retry_found_clip, request, reply), partial(_not_read, reply))

    def _retry_found_clip(
        self, request: wire.Retry, reply: Reply, found: tuple[str, str, str] | None
    ) -> None:
        if found is None or found[1] != "failed":
            state = f"is {found[1]}" if found else "is not known"
            hint = "only a clip whose transcript failed is retried; see `hermesctl why MESSAGE`"
            code: wire.RefusalCode = "conflict" if found else "unknown"
            reply(wire.Refused(f"message {request.turn} {state}", hint, code=code))
            return
        session, _, clip = found
        again = wire.Submit(session, "", request.key, busy="queue", clip=clip)
        self._at_owner(session, reply, lambda: self._submit_clip(again, reply))

    def _retry(self, request: wire.Retry, reply: Reply) -> None:
        """Submit the messages of a failed or interrupted turn again, in order, behind whatever waits."""
        read = partial(self._past.asked_of, request.turn)
        self._asking.ask(read, partial(self._retry_found, request, reply), partial(_not_read, reply))

    def _retry_found(self, request: wire.Retry, reply: Reply, found: AskedOf | None) -> None:
        if found is None or found.state not in ("failed", "interrupted"):
            state = f"is {found.state}" if found else "is not known"
            hint = "only a failed or interrupted turn is retried; see `hermesctl turns`"
            code: wire.RefusalCode = "conflict" if found else "unknown"
            reply(wire.Refused(f"turn {request.turn} {state}", hint, code=code))
            return
        text = "\n\n".join(found.texts)
        if fault := request_checks.text(text):
            reply(fault)
            return
        # An agent that is gone from the settings is not asked again: the session's own one answers.
        agent = found.agent if found.agent in self._live.settings.agents else ""
        again = wire.Submit(
            found.session, text, request.key, "queue", agent=agent, instructions=found.instructions
        )
        submit = partial(self._submit, again, reply, retries=request.turn)
        self._at_owner(found.session, reply, submit)

    def _interrupt(self, request: wire.Interrupt, reply: Reply) -> None:
        """Interrupt each session on its own; answer once, after the last."""
        sessions = self._engine.state.sessions
        running = [name for name, session in sessions.items() if session.turn is not None]
        if self._owners is not None:
            running = [name for name in running if not self._owners.is_leaving(name)]
        names = running if request.session is None else [request.session]
        if not names:
            reply(wire.Done(note="nothing runs"))
        outcomes: list[Outcome] = []

        def one_done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(names):
                reply(answer_to(outcomes))

        def failed(fault: Fault, outcome: Outcome) -> None:
            reply(wire.Refused(fault.error, fault.hint, code="internal"))

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
                self._views.queue(request.session, request.after, reply, partial(_not_read, reply))
            case "drop":
                event = events.DropAsked(request.session, request.message or "", request.by)
                self._engine.post(event, self._answering(reply))
            case "clear":
                cleared = events.DropAsked(request.session, None, request.by)
                self._engine.post(cleared, self._answering(reply))
            case "resume":
                self._engine.post(events.ResumeAsked(request.session), self._answering(reply))

    def _transcribe_apart(self, request: wire.Transcribe, reply: Reply) -> None:
        """The clip is no message: its transcript goes to the client, and to nothing else."""
        if fault := self._clip_fault(request.clip):
            reply(wire.Refused(*fault, code="invalid"))
        else:
            self._transcribe(request.clip, request.key, reply)

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
                    reply(wire.Refused(answer.error, answer.hint, answer.retry_after_seconds, answer.code))
            if then is not None:
                then()

        def failed(fault: Fault, answer: effects.Answer) -> None:
            reply(wire.Refused(fault.error, fault.hint, code="internal"))

        return self._contain.around("request", give, failed)


def _not_read(reply: Reply, error: JournalError | WireError) -> None:
    reply(wire.Refused(error.fault, error.hint, _NO_ROOM_RETRY_SECONDS, "unavailable"))


def message_id(session: str, key: str) -> str:
    """The same key in the same session is the same message, in every epoch."""
    digest = hashlib.blake2b(f"{session}\0{key}".encode(), digest_size=10)
    return f"m_{digest.hexdigest()}"
