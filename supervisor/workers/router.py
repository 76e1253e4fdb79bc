"""The router: the frames of workers become events; effects become frames in link.py.

Problem: a frame may come late, twice, or from a worker that no longer counts, and none may be lost or counted
twice. Streamed deltas must reach clients at once, though a commit takes milliseconds.

Method: each frame passes its link (numbering, see link.py), is decoded, and becomes one event of the core.
It is acknowledged only after the commit of the batch that contains its event; a worker keeps and resends
frames without an acknowledgement. A delta takes a shorter path: if its attempt is the running one, its frame
goes to subscribers unchanged, and its text is collected here until the engine takes it into a batch, every
0.2 s at most. Deltas are thus visible before they are durable; every other frame is visible after.

Invariants: events of one worker keep the order of its frames; collected deltas are taken before the next
frame that is no delta. A frame that violates the protocol, cannot be decoded or raises while it is served
ends that worker (`_give_up`) and nothing else. After that no frame of it becomes an event.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ipc import messages as wire
from ipc.bounds import sentence
from ipc.channel import CLOSED_BY_PEER
from ipc.codec import Decoder, encode, values
from ipc.errors import WireError
from supervisor.containment import Containment, Fault
from supervisor.core import events, pool, turns
from supervisor.core.effects import AssignTurn
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Who
from supervisor.event_sink import FrameSink
from supervisor.workers.agent_faults import AgentFaults
from supervisor.workers.link import HandedLine, Line, LineFault, Links, Words
from supervisor.workers.setup_timing import SetupTiming

# Streamed text reaches the journal at least this often, so a crash of the supervisor loses less than a
# quarter second.
SPEECH_SECONDS_MAX = 0.2
# A live process answers a pulse within milliseconds; one that does not is not waited for.
_DRAIN_SECONDS = 0.25
_LAST_PULSE = b"last"
# A worker pauses when too many of its frames are not acknowledged, so ask for a commit well before.
_NUDGED_AT = 256
# A process that has closed its link is found dead by then, or it closed it on purpose.
_CLOSED_SECONDS_MAX = 10.0
# A kept worker answers within milliseconds; on a loaded host it gets this long.
RECALL_SECONDS_MAX = 10.0
# Frames whose events have the same fields in the same order, `usage` as its three; a test compares them.
_SAME_WORDS: dict[type[wire.FromWorker], Callable[..., events.Event]] = {
    wire.ToolStarted: events.ToolStarted,
    wire.ToolFinished: events.ToolFinished,
    wire.Steered: events.Steered,
    wire.Asked: events.Asked,
    wire.Finished: events.Finished,
    wire.Failed: events.Failed,
    wire.ModelAway: events.ModelAway,
}


def _flat(message: wire.FromWorker) -> Iterator[Any]:
    """Yield the values in order, those of a nested part in its place."""
    for value in values(message):
        if isinstance(value, wire.Usage):
            yield from values(value)
        else:
            yield value


class LiveProcesses(Protocol):
    """Whether the process of an incarnation is there: ordered, and not reported dead."""

    def is_known(self, incarnation: int) -> bool: ...


class Listeners(Protocol):
    def delta(self, session: str, frame: bytes) -> None: ...


@dataclass(slots=True, eq=False)
class _Drain:
    """Workers whose answer to the last pulse is missing, and the call that follows."""

    missing: set[Line]
    then: Callable[[], None]


class Router:
    """The links to all workers.

    Each worker has two channels of its own, for frames and pulses, which are connected before its process is
    made. So the channel identifies the sender, and a violation ends that worker only.
    """

    def __init__(
        self,
        *,
        subscriptions: Listeners,
        build_assign: Callable[[AssignTurn], wire.Assign],
        build_setup: Callable[[str], wire.Setup],
        contain: Containment,
        faults: AgentFaults,
        attempt_ended: Callable[[int], None] = lambda incarnation: None,
    ) -> None:
        """`attempt_ended` gets the incarnation of a worker that has sent the end of its attempt."""
        self._faults = faults
        self._subscriptions = subscriptions
        self._loop = asyncio.get_running_loop()
        self._decoder: Decoder[wire.FromWorker] = Decoder(wire.FromWorker)
        self._links = Links(build_assign, build_setup)
        self._timing = SetupTiming(self._links.set_up, self._is_queued, lambda: self._links.assigned_at)
        self._lines = self._links.of
        # Nothing is added to them here: called without a step in between.
        self.assign = self._links.assign
        self.steer = self._links.steer
        self.answer = self._links.answer
        self.cancel, self.graces = self._links.cancel, self._links.graces
        self._attempt_ended = attempt_ended
        self._undecided: dict[Who, list[Words]] = {}
        self._flush: asyncio.TimerHandle | None = None
        # Stale frames that reached no decision: of dead workers, or seen before.
        self.stale_frames = 0
        self._drains: dict[_Drain, None] = {}
        self._recalled: dict[Line, None] = {}  # kept workers that have not answered yet
        self._frame_contained = contain.around("worker", self._frame_arrived, self._frame_failed)
        self._pulse_contained = contain.around("worker", self._pulse_arrived, self._frame_failed)

    @property
    def link_count(self) -> int:
        return len(self._lines)

    def open(self, engine: FrameSink, known: LiveProcesses) -> None:
        self._engine = engine
        self._known = known
        self._links.open(engine.post)

    def connected(self, seat: int, incarnation: int, frames: socket.socket, pulse: socket.socket) -> None:
        """Open the supervisor's ends of the channels to a worker that is being made."""
        line = self._lines[incarnation] = Line(Who(self._engine.state.epoch, seat, incarnation))
        line.open(frames, pulse, self._frame_contained, self._pulse_contained, self._ended)

    # --- from workers -----------------------------------------------------------------------------------

    def _frame_arrived(self, line: Line, parts: list[bytes]) -> None:
        """Handle a frame. One that arrives over a gap, as after a handoff, is resent and counts then."""
        try:
            frame = line.take(parts)
            if frame is None:
                self.stale_frames += 1
                return
            message = self._decoder.decode(frame)
        except LineFault as fault:
            self._give_up(line, Reason(EndReason.BROKE_PROTOCOL, str(fault)))
            return
        except WireError as error:
            self._give_up(line, Reason(EndReason.BAD_FRAME, f"read: {error}"))
            return
        if isinstance(message, wire.Delta):
            self._spoke(line, message, frame)
            return
        # Later deltas come after this frame.
        line.words = None
        self._happened(line, message, frame)

    def _frame_failed(self, fault: Fault, line: Line, parts: list[bytes]) -> None:
        """Serving its frame raised: the worker ends, for it cannot be known what of the frame was done."""
        self._give_up(line, Reason(EndReason.BAD_FRAME, f"served: {fault.error}"))

    def _pulse_arrived(self, line: Line, parts: list[bytes]) -> None:
        try:
            line.pulse_answered()
        except LineFault as fault:
            self._give_up(line, Reason(EndReason.BROKE_PROTOCOL, str(fault)))
            return
        self._engine.post(events.WorkerAlive(line.who, "pulse"))
        if parts[-1] == _LAST_PULSE:
            line.drain()
            for drain in list(self._drains):
                drain.missing.discard(line)
                if not drain.missing:
                    self._drained(drain)

    def _ended(self, line: Line, fault: str) -> None:
        """A channel is gone. If its process has died, the report of its death says more."""
        if fault == CLOSED_BY_PEER:
            line.closed_at = self._loop.time()
        else:
            self._give_up(line, Reason(EndReason.BROKE_PROTOCOL, fault))

    def _give_up(self, line: Line, reason: Reason) -> None:
        """Ends the worker by name; from here on its frames are ignored."""
        self._hang_up(line)
        self._engine.post(events.WorkerUnreachable(line.who, reason))

    def _spoke(self, line: Line, message: wire.Delta, frame: bytes) -> None:
        words = line.words
        # No decision was made since the collected deltas passed the fence: the check is not repeated.
        if words is None or words.turn != message.turn or words.attempt != message.attempt:
            if turns.running(self._engine.state, line.who, message.turn, message.attempt) is None:
                self.stale_frames += 1
                return
            words = line.words = Words(line, message.turn, message.attempt, self._taken)
            self._undecided.setdefault(line.who, []).append(words)
            self._engine.hold(words.take)
            if self._flush is None:
                self._flush = self._loop.call_later(SPEECH_SECONDS_MAX, self._engine.nudge)
        words.texts.append(message.text)
        self._subscriptions.delta(message.session, frame)
        if line.received - line.acknowledged >= _NUDGED_AT:
            self._engine.nudge()

    def _happened(self, line: Line, message: wire.FromWorker, frame: bytes) -> None:
        who = line.who
        match message:
            case wire.Hello(has_setup=True):
                worker = pool.current(self._engine.state, who)
                if worker is not None:
                    self._timing.asked(who, worker.agent)
                event: events.Event = events.WorkerAlive(who, "loop")
            case wire.Beat() | wire.Hello() | wire.Delta():
                event = events.WorkerAlive(who, "loop")
            case wire.Ready():
                event = events.WorkerReady(who)
            case wire.AgentFault(error=error, hint=hint):
                worker = pool.current(self._engine.state, who)
                if worker is not None:
                    self._faults.told(worker.agent, error, hint)
                event = events.WorkerAlive(who, "loop")
            case wire.Kept():
                self._recalled.pop(line, None)
                event = events.WorkerKept(who, message.turn, message.attempt)
            case wire.Noted():
                found = turns.running(self._engine.state, who, message.turn, message.attempt)
                if found is not None:
                    self._subscriptions.delta(found[0].name, frame)
                event = events.Noted(who, message.turn, message.attempt)
            case _:
                if isinstance(message, wire.Failed) and message.outage:
                    self._tell_wait(who, message)
                if isinstance(message, wire.Finished):
                    self._answered(who)
                event = _SAME_WORDS[type(message)](who, *_flat(message))
        if who.incarnation in self.graces and isinstance(message, wire.Finished | wire.Failed):
            self._attempt_ended(who.incarnation)
        self._engine.post(event)

    def _is_queued(self, agent: str) -> bool:
        return any(place.line == agent for place in self._engine.state.queued.values())

    def _answered(self, who: Who) -> None:
        worker = pool.current(self._engine.state, who)
        if worker is not None:
            self._faults.answered(worker.agent)

    def _tell_wait(self, who: Who, message: wire.Failed) -> None:
        """Tell subscribers of the session that its turn waits, and for what."""
        found = turns.running(self._engine.state, who, message.turn, message.attempt)
        if found is not None:
            text = sentence(f"{message.error}; it waits for the model server (hint: {message.hint})")
            self._subscriptions.delta(found[0].name, encode(wire.Noted(message.turn, message.attempt, text)))

    # --- across a restart in place ----------------------------------------------------------------------

    def hand_over(self, incarnations: Iterable[int]) -> dict[int, HandedLine]:
        """Return the links of these workers for the next image of the supervisor, by incarnation."""
        handed = {}
        for incarnation in incarnations:
            # A worker that was given up has no link, though its end may not be decided yet.
            line = self._lines.pop(incarnation, None)
            found = line.hand_over(self.graces.get(incarnation, 0.0)) if line is not None else None
            if found is not None:
                handed[incarnation] = found
        return handed

    def recall(self, who: Who, handed: HandedLine) -> None:
        """Reopen the link of a kept worker. Frames before its resynchronisation are requested again later."""
        line = self._lines[who.incarnation] = Line(who, handed.safe)
        self._recalled[line] = None
        if handed.grace:
            self.graces[who.incarnation] = handed.grace
        line.reopen(handed, self._frame_contained, self._pulse_contained, self._ended)

    def ask_recalled(self) -> None:
        """Ask kept workers to resend; one that does not answer is given up, and its turn is tried again."""
        for line in list(self._recalled):
            line.is_heard = True
            self._links.send(line.who, wire.Resend(line.safe))
        self._loop.call_later(RECALL_SECONDS_MAX, self._give_up_recalled)

    def _give_up_recalled(self) -> None:
        for line in list(self._recalled):
            self._give_up(line, Reason(EndReason.NOT_RECALLED))

    # --- to the engine ----------------------------------------------------------------------------------

    def all_taken(self) -> None:
        """Everything received until now is in the batch: its commit makes it durable."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        for line in self._lines.values():
            line.all_taken()

    def _taken(self, words: Words) -> None:
        undecided = self._undecided[words.line.who]
        undecided.remove(words)
        if not undecided:
            del self._undecided[words.line.who]
        if words.line.words is words:
            words.line.words = None

    def acknowledge(self) -> None:
        """After a commit: acknowledge the frames that need not be sent again."""
        for line in self._lines.values():
            line.acknowledge()

    def undecided_text(self, who: Who) -> str:
        """Return text of a worker that was streamed but not decided yet."""
        return "".join(text for words in self._undecided.get(who, ()) for text in words.texts)

    def streamed(self, session_name: str) -> wire.Delta | None:
        """Return the text of a session's open turn so far, for a client that subscribes now."""
        session = self._engine.state.sessions.get(session_name)
        turn = session.turn if session else None
        if turn is None or (turn.attempt is not None and turn.attempt.verdict is not None):
            return None
        text = turn.text + (self.undecided_text(turn.attempt.who) if turn.attempt else "")
        return wire.Delta(session_name, turn.id, turn.attempts, 0, text) if text else None

    # --- to workers -------------------------------------------------------------------------------------

    def take_pulse(self) -> None:
        """Ask every process for a sign of life. A missing answer, or a full channel, is no sign of life."""
        for incarnation, line in list(self._lines.items()):
            if not self._known.is_known(incarnation):
                self._hang_up(line)
            elif line.closed_at is not None and self._loop.time() - line.closed_at > _CLOSED_SECONDS_MAX:
                self._give_up(line, Reason(EndReason.LINE_CLOSED))
            else:
                line.ask_pulse(b"")

    def after_frames(self, then: Callable[[], None]) -> None:
        """Call `then` once all frames sent until now are received; soon, if workers do not answer.

        Frames in flight are read before the answer to a pulse that is sent after them.
        """
        drain = _Drain({line for line in self._lines.values() if line.ask_pulse(_LAST_PULSE)}, then)
        self._drains[drain] = None
        if drain.missing:
            self._loop.call_later(_DRAIN_SECONDS, self._drained, drain)
        else:
            self._drained(drain)

    def _drained(self, drain: _Drain) -> None:
        if drain in self._drains:
            del self._drains[drain]
            # Deferred: frames that came with the answer are posted in this round of the loop.
            self._loop.call_soon(drain.then)

    def close(self) -> None:
        for line in list(self._lines.values()):
            self._hang_up(line)

    def _hang_up(self, line: Line) -> None:
        """Close the link and release its buffers."""
        line.close()
        self._lines.pop(line.who.incarnation, None)
        self.graces.pop(line.who.incarnation, None)
        self._recalled.pop(line, None)
