"""The links to workers: each a channel for frames and one for pulses, with flow control; and frames to them.

A worker numbers its frames and keeps each until it is acknowledged, which happens after a commit; it pauses
when too many are not. The supervisor enforces this, so that a worker that sends more than the journal can
write takes a bounded amount of memory. Each pulse is answered once. A worker that does otherwise is faulty:
LineFault says what it did, and its link is closed.
"""

import socket
from collections.abc import Callable
from functools import partial

from ipc import messages as wire
from ipc.channel import MESSAGE_BOUNDS, Channel, HandedChannel
from ipc.codec import FRAME_BYTES_MAX, encode
from ipc.message_parts import Part
from ipc.zmtp import Bounds, Sent
from supervisor.clock import monotonic
from supervisor.core.effects import AnswerTurn, AssignTurn, KillWorker, SteerTurn
from supervisor.core.events import Event, TextStreamed, WorkerUnreachable
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Who

# A correct worker has no more in flight: its outbox pauses at 1,024 frames or 4 MiB, except for the one frame
# that exceeds it and a few that do not wait. A test compares the two.
UNACKNOWLEDGED_FRAMES_MAX = 1024 + 64
UNACKNOWLEDGED_BYTES_MAX = 4 * 1024 * 1024 + FRAME_BYTES_MAX
# Repeated frames occur only for those in flight during a handoff.
IGNORED_FRAMES_MAX = 2 * UNACKNOWLEDGED_FRAMES_MAX
# For a worker that does not read; buffers of the kernel and the socket come on top. One that reads may have
# this much on the way at once: its Assign and the messages it is offered. A test compares them.
UNSENT_BYTES_MAX = FRAME_BYTES_MAX + 4 * 1024 * 1024
_PULSE_BOUNDS = Bounds(parts_max=1, bytes_max=16)

Arrived = Callable[["Line", list[bytes]], None]
Ended = Callable[["Line", str], None]


class LineFault(Exception):
    """A violation of the protocol by a worker; the sentence refers to it as "it"."""


class HandedLine(Part, frozen=True):
    """A link on its way to the next image: the last durable frame, and the unanswered pulses."""

    safe: int
    owed: int
    frames: HandedChannel
    pulse: HandedChannel
    # Seconds in which its agent may cancel an interrupted turn; an image of an earlier version sends none.
    grace: float = 0.0


class Line:
    """The link to one worker process; fences decide whether its frames count."""

    def __init__(self, who: Who, safe: int = 0) -> None:
        self.who = who
        self.received = self.safe = self.acknowledged = safe
        # The same counts in bytes.
        self._received_bytes = self._safe_bytes = self._acknowledged_bytes = 0
        self._ignored = 0
        self._owed = 0
        # False until a kept worker is asked to resend: earlier frames come again.
        self.is_heard = True
        # When the process closed a channel; it has probably died.
        self.closed_at: float | None = None
        # The latest deltas without a decision; all of them have passed the fence.
        self.words: Words | None = None
        self._frames: Channel
        self._pulse: Channel

    def open(
        self, frames: socket.socket, pulse: socket.socket, received: Arrived, stale: Arrived, ended: Ended
    ) -> None:
        """Open over connected sockets; frames go to `received` or `stale`."""
        gone = partial(ended, self)
        self._frames = Channel(frames, partial(received, self), gone, UNSENT_BYTES_MAX)
        self._pulse = Channel(pulse, partial(stale, self), gone, UNSENT_BYTES_MAX, _PULSE_BOUNDS)

    def reopen(self, handed: HandedLine, received: Arrived, stale: Arrived, ended: Ended) -> None:
        """Open over the channels of an earlier image of this process."""
        self.is_heard = False
        self._owed = handed.owed
        gone = partial(ended, self)
        self._frames = Channel.take_over(
            handed.frames, partial(received, self), gone, UNSENT_BYTES_MAX, MESSAGE_BOUNDS
        )
        self._pulse = Channel.take_over(
            handed.pulse, partial(stale, self), gone, UNSENT_BYTES_MAX, _PULSE_BOUNDS
        )

    def hand_over(self, grace: float) -> HandedLine | None:
        """Hand over to the next image of this process; None when the worker is not connected.

        A descriptor is handed over with the other one or not at all: it would stay open in the next image.
        """
        pulse = self._pulse.hand_over() if self._frames.is_open else None
        frames = self._frames.hand_over() if pulse is not None else None
        if frames is None or pulse is None:
            return None
        return HandedLine(self.safe, self._owed, frames, pulse, grace)

    def close(self) -> None:
        self._frames.close()
        self._pulse.close()

    def take(self, parts: list[bytes]) -> bytes | None:
        """Return the message of a frame [number, message]; None when it is not the next one."""
        number = int.from_bytes(parts[0]) if len(parts) == 2 else 0
        if number != self.received + 1 or not self.is_heard:
            self._ignored += 1
            if self._ignored > IGNORED_FRAMES_MAX:
                raise LineFault(f"it sent more than {IGNORED_FRAMES_MAX} frames out of turn")
            return None
        self.received = number
        self._received_bytes += len(parts[1])
        if (
            number - self.acknowledged > UNACKNOWLEDGED_FRAMES_MAX
            or self._received_bytes - self._acknowledged_bytes > UNACKNOWLEDGED_BYTES_MAX
        ):
            raise LineFault("it did not wait for its frames to be acknowledged")
        return parts[1]

    def all_taken(self) -> None:
        """Mark what was received until now: it is about to be committed."""
        self.safe, self._safe_bytes = self.received, self._received_bytes

    def acknowledge(self) -> None:
        """Acknowledge durable frames; if the channel is full, the next commit does it."""
        if self.safe > self.acknowledged and self.send(encode(wire.Ack(self.safe))) is Sent.SENT:
            self.acknowledged, self._acknowledged_bytes = self.safe, self._safe_bytes

    def send(self, frame: bytes) -> Sent:
        return self._frames.send([frame])

    def ask_pulse(self, content: bytes) -> bool:
        """Return whether the pulse could be sent."""
        is_sent = self._pulse.send([content]) is Sent.SENT
        self._owed += is_sent
        return is_sent

    def pulse_answered(self) -> None:
        self._owed -= 1
        if self._owed < 0:
            raise LineFault("it answered a pulse that was not sent")

    def drain(self) -> None:
        """Receive all frames that were sent until now."""
        self._frames.drain()


class Links:
    """The links to all workers, by incarnation; effects become frames here."""

    def __init__(
        self, build_assign: Callable[[AssignTurn], wire.Assign], build_setup: Callable[[str], wire.Setup]
    ) -> None:
        self.of: dict[int, Line] = {}
        # Of those whose agent may cancel an interrupted turn by itself: the seconds that it has.
        self.graces: dict[int, float] = {}
        # When the last turn began.
        self.assigned_at = float("-inf")
        self._build_assign = build_assign
        self._build_setup = build_setup

    def open(self, post: Callable[[Event], None]) -> None:
        """`post` gets the workers that cannot be reached."""
        self._post = post

    def set_up(self, who: Who, agent: str) -> None:
        self.send(who, self._build_setup(agent))

    def assign(self, effect: AssignTurn) -> None:
        self.assigned_at = monotonic()
        assign = self._build_assign(effect)
        if grace := assign.agent.options.get("cancel_grace_seconds"):
            self.graces[effect.who.incarnation] = grace
        self.send(effect.who, assign)

    def steer(self, effect: SteerTurn) -> None:
        self.send(effect.who, wire.Steer(effect.turn, effect.attempt, effect.message, effect.text))

    def cancel(self, effect: KillWorker) -> bool:
        """Tell a worker that its turn was interrupted; false when it cannot be told."""
        line = self.of.get(effect.incarnation)
        return line is not None and line.send(encode(wire.Cancel(effect.turn))) is Sent.SENT

    def answer(self, effect: AnswerTurn) -> None:
        fence = effect.turn, effect.attempt, effect.question, effect.hold
        self.send(effect.who, wire.Answered(*fence, effect.text))

    def send(self, who: Who, message: wire.ToWorker) -> None:
        line = self.of.get(who.incarnation)
        if line is None:
            return  # the process is gone, or its end was decided
        sent = line.send(encode(message))
        if sent is not Sent.SENT:
            kind = EndReason.NOT_CONNECTED if sent is Sent.GONE else EndReason.NOT_READING
            self._post(WorkerUnreachable(who, Reason(kind)))


class Words:
    """Consecutive deltas of one attempt, at their place in the order of events."""

    __slots__ = ("_taken", "attempt", "line", "texts", "turn")

    def __init__(self, line: Line, turn: str, attempt: int, taken: Callable[["Words"], None]) -> None:
        self.line = line
        self.turn = turn
        self.attempt = attempt
        self._taken = taken
        self.texts: list[str] = []

    def take(self) -> TextStreamed:
        """Return the event for the core; later deltas form a new one."""
        self._taken(self)
        return TextStreamed(self.line.who, self.turn, self.attempt, "".join(self.texts))
