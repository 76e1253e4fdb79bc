"""Workers' frames become events, effects become frames: the only file that speaks both tongues.

Words travel a short road: a delta that passes the fence goes to the feed byte for byte, and its text is
kept here until the engine takes it to the journal, a few times a second.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ipc import messages as wire
from ipc.codec import Decoder, encode, values
from ipc.errors import WireError
from ipc.sockets import LoopSocket, Sent
from supervisor.core import events, turns
from supervisor.core.effects import AssignTurn, SteerTurn
from supervisor.core.model import State, Who

# Streamed words reach the journal at least this often, so a crash of the supervisor loses less than a
# quarter second.
SPEECH_SECONDS_MAX = 0.2
# A live process answers a pulse within milliseconds; one that does not has nothing more to say.
_HEAR_OUT_SECONDS = 0.25
_LAST_PULSE = b"last"
# A worker holds back when this many of its frames are not acknowledged, so ask for a commit well before.
_UNACKNOWLEDGED_MAX = 256
# A kept worker connects again within a tenth of a second; one that is starved gets this long to answer.
RECALL_SECONDS_MAX = 10.0
_RECALL_AGAIN_SECONDS = 0.02
# Frames that the rules know by the same fields in the same order; a test compares them.
_SAME_WORDS: dict[type[wire.FromWorker], Callable[..., events.Event]] = {
    wire.ToolStarted: events.ToolStarted,
    wire.ToolFinished: events.ToolFinished,
    wire.Steered: events.Steered,
    wire.Asked: events.Asked,
}


class Engine(Protocol):
    @property
    def state(self) -> State: ...
    def post(self, event: events.Event) -> None: ...
    def hold(self, words: Callable[[], events.Spoke]) -> None: ...
    def nudge(self) -> None: ...


class Identities(Protocol):
    """Which process speaks under an unguessable name, and the other way round."""

    def find(self, identity: bytes) -> tuple[int, int] | None: ...
    def identity(self, incarnation: int) -> bytes | None: ...


class Fault(Protocol):
    @property
    def error(self) -> str: ...


class Listeners(Protocol):
    def delta(self, session: str, frame: bytes) -> None: ...


@dataclass(slots=True)
class _Line:
    """The conversation with one worker process; whether it still counts is for the fences to say."""

    who: Who
    received: int = 0
    safe: int = 0
    acknowledged: int = 0
    # The latest words that are still to be decided; all of them have passed the fence.
    words: "Words | None" = None


class Words:
    """Words of one attempt without anything between them, in their place among what happened."""

    __slots__ = ("_switchboard", "attempt", "line", "texts", "turn")

    def __init__(self, switchboard: "Switchboard", line: _Line, turn: str, attempt: int) -> None:
        self._switchboard = switchboard
        self.line = line
        self.turn = turn
        self.attempt = attempt
        self.texts: list[str] = []

    def take(self) -> events.Spoke:
        """For the rules; what is said from here on are other words."""
        self._switchboard._taken(self)
        return events.Spoke(self.line.who, self.turn, self.attempt, "".join(self.texts))


@dataclass(slots=True)
class _Recall:
    """A kept worker that is to say again what was not safe; `is_asked` once it could be told so."""

    identity: bytes
    line: _Line
    is_asked: bool = False


@dataclass(slots=True, eq=False)
class _HearingOut:
    """Whose answer to the last pulse is missing, and what happens when none is."""

    missing: set[bytes]
    then: Callable[[], None]


class Switchboard:
    """The lines to all workers."""

    def __init__(
        self,
        *,
        identities: Identities,
        feed: Listeners,
        brief: Callable[[AssignTurn], wire.Assign],
    ) -> None:
        self._identities = identities
        self._feed = feed
        self._brief = brief
        self._loop = asyncio.get_running_loop()
        self._decoder: Decoder[wire.FromWorker] = Decoder(wire.FromWorker)
        self._lines: dict[bytes, _Line] = {}  # by the worker's identity
        self._undecided: dict[Who, list[Words]] = {}
        self._flush: asyncio.TimerHandle | None = None
        self._recalled: dict[Who, _Recall] = {}  # kept workers that have not answered yet
        # Frames that were not even decided: of the dead, of nobody, or seen before.
        self.echoes = 0
        self._hearing_out: dict[_HearingOut, None] = {}

    def open(self, engine: Engine, frames: LoopSocket, pulse: LoopSocket) -> None:
        self._engine = engine
        self._frames = frames
        self._pulse = pulse

    # --- from workers -----------------------------------------------------------------------------------

    def frame_arrived(self, parts: list[bytes]) -> None:
        """A frame of a worker: [identity, number, message]. Unknown names and repeated numbers are echoes.

        So is what came over a gap, as after a change of the supervisor's image: it is asked for again.
        """
        line = self._line(parts[0]) if len(parts) == 3 else None
        if line is None:
            self.echoes += 1
            return
        number = int.from_bytes(parts[1])
        if number != line.received + 1 or not self._is_asked(line.who):
            self.echoes += 1
            return
        line.received = number
        try:
            message = self._decoder.decode(parts[2])
        except WireError as error:
            self._engine.post(
                events.WorkerUnreachable(line.who, f"it sent a frame that cannot be read: {error}")
            )
            return
        if isinstance(message, wire.Delta):
            self._spoke(line, message, parts[2])
            return
        # What it says after this comes after it.
        line.words = None
        self._happened(line.who, message, parts[2])

    def frame_failed(self, fault: Fault, parts: list[bytes]) -> None:
        """Serving its frame raised: the worker ends, for it cannot be known what of the frame was done."""
        line = self._lines.get(parts[0])
        if line is not None:
            reason = f"it sent a frame that cannot be served: {fault.error}"
            self._engine.post(events.WorkerUnreachable(line.who, reason))

    def pulse_arrived(self, parts: list[bytes]) -> None:
        line = self._line(parts[0])
        if line is not None:
            self._engine.post(events.WorkerAlive(line.who, "pulse"))
        if parts[-1] == _LAST_PULSE:
            for hearing in list(self._hearing_out):
                hearing.missing.discard(parts[0])
                if not hearing.missing:
                    self._heard_out(hearing)

    def _line(self, identity: bytes) -> _Line | None:
        line = self._lines.get(identity)
        if line is None and (found := self._identities.find(identity)):
            line = self._lines[identity] = _Line(Who(self._engine.state.epoch, *found))
        return line

    def _spoke(self, line: _Line, message: wire.Delta, frame: bytes) -> None:
        words = line.words
        # Nothing was decided since the words that wait here passed the fence: it need not be asked again.
        if words is None or words.turn != message.turn or words.attempt != message.attempt:
            if turns.running(self._engine.state, line.who, message.turn, message.attempt) is None:
                self.echoes += 1
                return
            words = line.words = Words(self, line, message.turn, message.attempt)
            self._undecided.setdefault(line.who, []).append(words)
            self._engine.hold(words.take)
            if self._flush is None:
                self._flush = self._loop.call_later(SPEECH_SECONDS_MAX, self._engine.nudge)
        words.texts.append(message.text)
        self._feed.delta(message.session, frame)
        if line.received - line.acknowledged >= _UNACKNOWLEDGED_MAX:
            self._engine.nudge()

    def _happened(self, who: Who, message: wire.FromWorker, frame: bytes) -> None:
        match message:
            case wire.Beat() | wire.Hello() | wire.Delta():
                event: events.Event = events.WorkerAlive(who, "loop")
            case wire.Ready():
                event = events.WorkerReady(who)
            case wire.Kept():
                self._recalled.pop(who, None)
                event = events.WorkerKept(who, message.turn, message.attempt)
            case wire.Noted():
                found = turns.running(self._engine.state, who, message.turn, message.attempt)
                if found is not None:
                    self._feed.delta(found[0].name, frame)
                event = events.Noted(who, message.turn, message.attempt)
            case wire.Finished():
                usage = message.usage
                ending = (message.turn, message.attempt, message.text)
                spent = (usage.input_tokens, usage.output_tokens)
                event = events.Finished(who, *ending, *spent, message.finish)
            case wire.Failed():
                why = (message.error, message.hint, message.again)
                event = events.Failed(who, message.turn, message.attempt, *why)
            case _:
                event = _SAME_WORDS[type(message)](who, *values(message))
        self._engine.post(event)

    # --- across a restart in place ----------------------------------------------------------------------

    def safe(self, identity: bytes) -> int:
        """The last frame of a worker that is in the journal."""
        line = self._lines.get(identity)
        return line.safe if line is not None else 0

    def recall(self, identity: bytes, who: Who, safe: int) -> None:
        """A worker of the image before: it connects again by itself and is then asked for the rest."""
        line = self._lines[identity] = _Line(who, received=safe, safe=safe, acknowledged=safe)
        self._recalled[who] = _Recall(identity, line)

    def _is_asked(self, who: Who) -> bool:
        """What a kept worker says before the rules know it again would be lost: it is asked for later."""
        recall = self._recalled.get(who)
        return recall is None or recall.is_asked

    def ask_recalled(self, patience_seconds: float = RECALL_SECONDS_MAX) -> None:
        """Until every kept worker has answered; one that does not is given up, and its turn tried again."""
        for who, recall in list(self._recalled.items()):
            if patience_seconds <= 0:
                del self._recalled[who]
                reason = "it did not answer after the restart"
                self._engine.post(events.WorkerUnreachable(who, reason))
            elif not recall.is_asked:
                sent = self._frames.send([recall.identity, encode(wire.Resend(recall.line.safe))])
                recall.is_asked = sent is Sent.SENT
        if self._recalled:
            left = patience_seconds - _RECALL_AGAIN_SECONDS
            self._loop.call_later(_RECALL_AGAIN_SECONDS, self.ask_recalled, left)

    # --- to the engine ----------------------------------------------------------------------------------

    def all_taken(self) -> None:
        """Everything received until now is in the batch: once that is committed, it is safe."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        for line in self._lines.values():
            line.safe = line.received

    def _taken(self, words: Words) -> None:
        undecided = self._undecided[words.line.who]
        undecided.remove(words)
        if not undecided:
            del self._undecided[words.line.who]
        if words.line.words is words:
            words.line.words = None

    def acknowledge(self) -> None:
        """After a commit: tell each worker which of its frames need not be sent again.

        One that cannot be told now is told with the next commit; its death is reported by who watches it.
        """
        for identity, line in self._lines.items():
            if line.safe > line.acknowledged:
                sent = self._frames.send([identity, encode(wire.Ack(line.safe))])
                line.acknowledged = line.safe if sent is Sent.SENT else line.acknowledged

    def said(self, who: Who) -> str:
        """Words of a worker that have been shown but not decided yet."""
        return "".join(text for words in self._undecided.get(who, ()) for text in words.texts)

    def spoken(self, session_name: str) -> wire.Delta | None:
        """All that the running attempt of a session has said so far, for a client that joins now."""
        session = self._engine.state.sessions.get(session_name)
        turn = session.turn if session else None
        attempt = turn.attempt if turn else None
        if turn is None or attempt is None or attempt.verdict is not None:
            return None
        said = attempt.said + self.said(attempt.who)
        return wire.Delta(session_name, turn.id, attempt.number, 0, said) if said else None

    # --- to workers -------------------------------------------------------------------------------------

    def assign(self, effect: AssignTurn) -> None:
        self._send(effect.who, self._brief(effect))

    def steer(self, effect: SteerTurn) -> None:
        self._send(effect.who, wire.Steer(effect.turn, effect.attempt, effect.message, effect.text))

    def take_pulse(self) -> None:
        """Ask every process for a sign of life. No answer is no sign; so is a peer that cannot be asked."""
        for identity, line in list(self._lines.items()):
            if self._identities.find(identity) is None:
                self._hang_up(identity, line)
            else:
                self._pulse.send([identity, b""])

    def hear_out(self, then: Callable[[], None]) -> None:
        """Do something once all that workers have sent until now is heard; soon, if they do not answer.

        Frames that lie between the processes are read before the answer to a pulse that is sent after them.
        """
        asked = (
            identity for identity in self._lines if self._pulse.send([identity, _LAST_PULSE]) is Sent.SENT
        )
        hearing = _HearingOut(set(asked), then)
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
        identity = self._identities.identity(who.incarnation)
        if identity is None:
            return  # the process is gone; its line is closed with the next pulse
        sent = self._frames.send([identity, encode(message)])
        if sent is not Sent.SENT:
            reason = "it is not connected" if sent is Sent.GONE else "it does not read its frames"
            self._engine.post(events.WorkerUnreachable(who, reason))

    def _hang_up(self, identity: bytes, line: _Line) -> None:
        """The process is gone; nothing can be said to it any more."""
        del self._lines[identity]
        self._recalled.pop(line.who, None)
