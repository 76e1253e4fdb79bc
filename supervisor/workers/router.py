"""Workers' frames become events, effects become frames: the only file that speaks both tongues.

Words travel a short road: a delta that passes the fence goes to the feed byte for byte, and its text is
kept here until the engine takes it to the journal, a few times a second.
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
from ipc.zmtp import Sent
from supervisor.containment import Containment, Fault
from supervisor.core import events, turns
from supervisor.core.effects import AssignTurn, SteerTurn
from supervisor.core.state import State, Who
from supervisor.workers.link import HandedLine, Line, LineFault, Words

# Streamed words reach the journal at least this often, so a crash of the supervisor loses less than a
# quarter second.
SPEECH_SECONDS_MAX = 0.2
# A live process answers a pulse within milliseconds; one that does not has nothing more to say.
_HEAR_OUT_SECONDS = 0.25
_LAST_PULSE = b"last"
# A worker holds back when this many of its frames are not acknowledged, so ask for a commit well before.
_NUDGED_AT = 256
# A process that has closed its line is found dead by then, or it lives and has done so on purpose.
_CLOSED_SECONDS_MAX = 10.0
# A kept worker answers within milliseconds; one that is starved gets this long.
RECALL_SECONDS_MAX = 10.0
# Frames that the rules know by the same fields in the same order, `usage` as its two; a test compares them.
_SAME_WORDS: dict[type[wire.FromWorker], Callable[..., events.Event]] = {
    wire.ToolStarted: events.ToolStarted,
    wire.ToolFinished: events.ToolFinished,
    wire.Steered: events.Steered,
    wire.Asked: events.Asked,
    wire.Finished: events.Finished,
    wire.Failed: events.Failed,
}


def _flat(message: wire.FromWorker) -> Iterator[Any]:
    """Its values in their order, those of its parts in the place of the part."""
    for value in values(message):
        if isinstance(value, wire.Usage):
            yield from values(value)
        else:
            yield value


class Engine(Protocol):
    @property
    def state(self) -> State: ...
    def post(self, event: events.Event) -> None: ...
    def hold(self, words: Callable[[], events.Spoke]) -> None: ...
    def nudge(self) -> None: ...


class Known(Protocol):
    """Whether the process of an incarnation is there: ordered, and not reported dead."""

    def is_known(self, incarnation: int) -> bool: ...


class Listeners(Protocol):
    def delta(self, session: str, frame: bytes) -> None: ...


@dataclass(slots=True, eq=False)
class _HearingOut:
    """Whose answer to the last pulse is missing, and what happens when none is."""

    missing: set[Line]
    then: Callable[[], None]


class Switchboard:
    """The lines to all workers.

    Each worker has two channels of its own, for frames and pulse, which are connected before its process is
    made. Whoever speaks there is that worker, and what it does wrong ends that worker.
    """

    def __init__(
        self,
        *,
        known: Known,
        feed: Listeners,
        brief: Callable[[AssignTurn], wire.Assign],
        contain: Containment,
    ) -> None:
        self._known = known
        self._feed = feed
        self._brief = brief
        self._loop = asyncio.get_running_loop()
        self._decoder: Decoder[wire.FromWorker] = Decoder(wire.FromWorker)
        self._lines: dict[int, Line] = {}  # by the worker's incarnation
        self._undecided: dict[Who, list[Words]] = {}
        self._flush: asyncio.TimerHandle | None = None
        # Frames that were not even decided: of the dead, or seen before.
        self.echoes = 0
        self._hearing_out: dict[_HearingOut, None] = {}
        self._recalled: dict[Line, None] = {}  # kept workers that have not answered yet
        self._frame_contained = contain.around("worker", self._frame_arrived, self._frame_failed)
        self._pulse_contained = contain.around("worker", self._pulse_arrived, self._frame_failed)

    def open(self, engine: Engine) -> None:
        self._engine = engine

    def connected(self, seat: int, incarnation: int, frames: socket.socket, pulse: socket.socket) -> None:
        """The supervisor's ends of the channels to a worker that is being made."""
        line = self._lines[incarnation] = Line(Who(self._engine.state.epoch, seat, incarnation))
        line.open(frames, pulse, self._frame_contained, self._pulse_contained, self._ended)

    # --- from workers -----------------------------------------------------------------------------------

    def _frame_arrived(self, line: Line, parts: list[bytes]) -> None:
        """What came over a gap, as after a change of the supervisor's image, comes again and counts then."""
        try:
            frame = line.take(parts)
            if frame is None:
                self.echoes += 1
                return
            message = self._decoder.decode(frame)
        except LineFault as fault:
            self._give_up(line, str(fault))
            return
        except WireError as error:
            self._give_up(line, f"it sent a frame that cannot be read: {error}")
            return
        if isinstance(message, wire.Delta):
            self._spoke(line, message, frame)
            return
        # What it says after this comes after it.
        line.words = None
        self._happened(line, message, frame)

    def _frame_failed(self, fault: Fault, line: Line, parts: list[bytes]) -> None:
        """Serving its frame raised: the worker ends, for it cannot be known what of the frame was done."""
        self._give_up(line, f"it sent a frame that cannot be served: {fault.error}")

    def _pulse_arrived(self, line: Line, parts: list[bytes]) -> None:
        try:
            line.pulse_answered()
        except LineFault as fault:
            self._give_up(line, str(fault))
            return
        self._engine.post(events.WorkerAlive(line.who, "pulse"))
        if parts[-1] == _LAST_PULSE:
            line.drain()
            for hearing in list(self._hearing_out):
                hearing.missing.discard(line)
                if not hearing.missing:
                    self._heard_out(hearing)

    def _ended(self, line: Line, reason: str) -> None:
        """A channel is gone. If its process has died, whoever watches that says more of it."""
        if reason == CLOSED_BY_PEER:
            line.closed_at = self._loop.time()
        else:
            self._give_up(line, reason)

    def _give_up(self, line: Line, reason: str) -> None:
        """Ends the worker by name; from here on it is not heard."""
        self._hang_up(line)
        self._engine.post(events.WorkerUnreachable(line.who, reason))

    def _spoke(self, line: Line, message: wire.Delta, frame: bytes) -> None:
        words = line.words
        # Nothing was decided since the words that wait here passed the fence: it need not be asked again.
        if words is None or words.turn != message.turn or words.attempt != message.attempt:
            if turns.running(self._engine.state, line.who, message.turn, message.attempt) is None:
                self.echoes += 1
                return
            words = line.words = Words(line, message.turn, message.attempt, self._taken)
            self._undecided.setdefault(line.who, []).append(words)
            self._engine.hold(words.take)
            if self._flush is None:
                self._flush = self._loop.call_later(SPEECH_SECONDS_MAX, self._engine.nudge)
        words.texts.append(message.text)
        self._feed.delta(message.session, frame)
        if line.received - line.acknowledged >= _NUDGED_AT:
            self._engine.nudge()

    def _happened(self, line: Line, message: wire.FromWorker, frame: bytes) -> None:
        who = line.who
        match message:
            case wire.Beat() | wire.Hello() | wire.Delta():
                event: events.Event = events.WorkerAlive(who, "loop")
            case wire.Ready():
                event = events.WorkerReady(who)
            case wire.Kept():
                self._recalled.pop(line, None)
                event = events.WorkerKept(who, message.turn, message.attempt)
            case wire.Noted():
                found = turns.running(self._engine.state, who, message.turn, message.attempt)
                if found is not None:
                    self._feed.delta(found[0].name, frame)
                event = events.Noted(who, message.turn, message.attempt)
            case _:
                if isinstance(message, wire.Failed) and message.outage:
                    self._tell_wait(who, message)
                event = _SAME_WORDS[type(message)](who, *_flat(message))
        self._engine.post(event)

    def _tell_wait(self, who: Who, message: wire.Failed) -> None:
        """Those who follow the session hear that its turn waits, and for what."""
        found = turns.running(self._engine.state, who, message.turn, message.attempt)
        if found is not None:
            text = sentence(f"{message.error}; it waits for the model server (hint: {message.hint})")
            self._feed.delta(found[0].name, encode(wire.Noted(message.turn, message.attempt, text)))

    # --- across a restart in place ----------------------------------------------------------------------

    def hand_over(self, incarnations: Iterable[int]) -> dict[int, HandedLine]:
        """The lines of these workers for the next image of the supervisor, by incarnation."""
        lines = {incarnation: self._lines.pop(incarnation).hand_over() for incarnation in incarnations}
        return {incarnation: handed for incarnation, handed in lines.items() if handed is not None}

    def recall(self, who: Who, handed: HandedLine) -> None:
        """A worker of the image before. What it says before the rules know it again is asked for later."""
        line = self._lines[who.incarnation] = Line(who, handed.safe)
        self._recalled[line] = None
        line.reopen(handed, self._frame_contained, self._pulse_contained, self._ended)

    def ask_recalled(self) -> None:
        """Asks kept workers for the rest; one that does not answer is given up, and its turn tried again."""
        for line in list(self._recalled):
            line.is_heard = True
            self._send(line.who, wire.Resend(line.safe))
        self._loop.call_later(RECALL_SECONDS_MAX, self._give_up_recalled)

    def _give_up_recalled(self) -> None:
        for line in list(self._recalled):
            self._give_up(line, "it did not answer after the restart")

    # --- to the engine ----------------------------------------------------------------------------------

    def all_taken(self) -> None:
        """Everything received until now is in the batch: once that is committed, it is safe."""
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
        """After a commit: tell each worker which of its frames need not be sent again."""
        for line in self._lines.values():
            line.acknowledge()

    def said(self, who: Who) -> str:
        """Words of a worker that have been shown but not decided yet."""
        return "".join(text for words in self._undecided.get(who, ()) for text in words.texts)

    def spoken(self, session_name: str) -> wire.Delta | None:
        """All that the open turn of a session has said so far, for a client that joins now."""
        session = self._engine.state.sessions.get(session_name)
        turn = session.turn if session else None
        if turn is None or (turn.attempt is not None and turn.attempt.verdict is not None):
            return None
        said = turn.said + (self.said(turn.attempt.who) if turn.attempt else "")
        return wire.Delta(session_name, turn.id, turn.attempts, 0, said) if said else None

    # --- to workers -------------------------------------------------------------------------------------

    def assign(self, effect: AssignTurn) -> None:
        self._send(effect.who, self._brief(effect))

    def steer(self, effect: SteerTurn) -> None:
        self._send(effect.who, wire.Steer(effect.turn, effect.attempt, effect.message, effect.text))

    def take_pulse(self) -> None:
        """Ask every process for a sign of life. No answer is no sign; so is a peer that cannot be asked."""
        for incarnation, line in list(self._lines.items()):
            if not self._known.is_known(incarnation):
                self._hang_up(line)
            elif line.closed_at is not None and self._loop.time() - line.closed_at > _CLOSED_SECONDS_MAX:
                self._give_up(line, "it has closed its line to the supervisor")
            else:
                line.ask_pulse(b"")

    def hear_out(self, then: Callable[[], None]) -> None:
        """Do something once all that workers have sent until now is heard; soon, if they do not answer.

        Frames that lie between the processes are read before the answer to a pulse that is sent after them.
        """
        hearing = _HearingOut({line for line in self._lines.values() if line.ask_pulse(_LAST_PULSE)}, then)
        self._hearing_out[hearing] = None
        if hearing.missing:
            self._loop.call_later(_HEAR_OUT_SECONDS, self._heard_out, hearing)
        else:
            self._heard_out(hearing)

    def _heard_out(self, hearing: _HearingOut) -> None:
        if hearing in self._hearing_out:
            del self._hearing_out[hearing]
            # Not at once: frames that came with the answer are posted in this round of the loop.
            self._loop.call_soon(hearing.then)

    def _send(self, who: Who, message: wire.ToWorker) -> None:
        line = self._lines.get(who.incarnation)
        if line is None:
            return  # the process is gone, or its end was decided
        sent = line.send(encode(message))
        if sent is not Sent.SENT:
            reason = "it is not connected" if sent is Sent.GONE else "it does not read its frames"
            self._engine.post(events.WorkerUnreachable(who, reason))

    def close(self) -> None:
        for line in list(self._lines.values()):
            self._hang_up(line)

    def _hang_up(self, line: Line) -> None:
        """Nothing can be said to it any more, and nothing that it has sent takes memory."""
        line.close()
        self._lines.pop(line.who.incarnation, None)
        self._recalled.pop(line, None)
