"""The line to one worker: a channel for frames, one for the pulse, and how much may be on the way in them.

A worker numbers its frames and keeps each until it is acknowledged, which happens after a commit; it holds
back when too many are not. The supervisor holds it to that, so that a worker that says more than the journal
can write takes a bounded amount of memory. A pulse is answered once. A worker that does otherwise is none of
ours any more: LineFault says what it did, and its line is of no further use.
"""

import socket
from collections.abc import Callable

from ipc.channel import MESSAGE_BOUNDS, Channel, HandedChannel
from ipc.codec import FRAME_BYTES_MAX, encode
from ipc.message_parts import Part
from ipc.messages import Ack
from ipc.zmtp import Bounds, Sent
from supervisor.core.events import Spoke
from supervisor.core.state import Who

# No honest worker has more on the way: its outbox holds back at 1,024 frames or 4 MiB, but for the one frame
# that goes over it and a few that do not wait. A test compares the two.
UNACKNOWLEDGED_FRAMES_MAX = 1024 + 64
UNACKNOWLEDGED_BYTES_MAX = 4 * 1024 * 1024 + FRAME_BYTES_MAX
# Nor does it repeat itself, but for what was on the way during a restart in place.
IGNORED_FRAMES_MAX = 2 * UNACKNOWLEDGED_FRAMES_MAX
# To a worker that does not read; what the kernel and its own socket hold comes on top.
UNSENT_BYTES_MAX = 4 * 1024 * 1024
_PULSE_BOUNDS = Bounds(parts_max=1, bytes_max=16)

Arrived = Callable[["Line", list[bytes]], None]
Ended = Callable[["Line", str], None]


class LineFault(Exception):
    """What a worker did that no worker of ours does; the sentence speaks of it as "it"."""


class HandedLine(Part, frozen=True):
    """A line on its way to the next image: the last frame in the journal, and pulses without an answer."""

    safe: int
    owed: int
    frames: HandedChannel
    pulse: HandedChannel


class Line:
    """The conversation with one worker process; whether it still counts is for the fences to say."""

    def __init__(self, who: Who, safe: int = 0) -> None:
        self.who = who
        self.received = self.safe = self.acknowledged = safe
        # The same of the bytes in them.
        self._received_bytes = self._safe_bytes = self._acknowledged_bytes = 0
        self._ignored = 0
        self._owed = 0
        # False before a kept worker is asked for what was not safe: what it says until then comes again.
        self.is_heard = True
        # When its process has closed a channel; it has probably died.
        self.closed_at: float | None = None
        # The latest words that are still to be decided; all of them have passed the fence.
        self.words: Words | None = None
        self._frames: Channel
        self._pulse: Channel

    def open(
        self, frames: socket.socket, pulse: socket.socket, heard: Arrived, echoed: Arrived, ended: Ended
    ) -> None:
        """Over connected sockets; a message of either goes to `heard` or `echoed`."""
        self._frames = Channel(
            frames, lambda parts: heard(self, parts), lambda reason: ended(self, reason), UNSENT_BYTES_MAX
        )
        self._pulse = Channel(
            pulse,
            lambda parts: echoed(self, parts),
            lambda reason: ended(self, reason),
            UNSENT_BYTES_MAX,
            _PULSE_BOUNDS,
        )

    def reopen(self, handed: HandedLine, heard: Arrived, echoed: Arrived, ended: Ended) -> None:
        """Over the channels of an earlier image of this process."""
        self.is_heard = False
        self._owed = handed.owed
        self._frames = Channel.take_over(
            handed.frames,
            lambda parts: heard(self, parts),
            lambda reason: ended(self, reason),
            UNSENT_BYTES_MAX,
            MESSAGE_BOUNDS,
        )
        self._pulse = Channel.take_over(
            handed.pulse,
            lambda parts: echoed(self, parts),
            lambda reason: ended(self, reason),
            UNSENT_BYTES_MAX,
            _PULSE_BOUNDS,
        )

    def hand_over(self) -> HandedLine | None:
        """For the next image of this process; None when the worker is not there."""
        frames, pulse = self._frames.hand_over(), self._pulse.hand_over()
        if frames is None or pulse is None:
            return None
        return HandedLine(self.safe, self._owed, frames, pulse)

    def close(self) -> None:
        self._frames.close()
        self._pulse.close()

    def take(self, parts: list[bytes]) -> bytes | None:
        """The message of a frame, [number, message]; None when it is not the next one: it does not count."""
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
        """What was received until now is about to be committed."""
        self.safe, self._safe_bytes = self.received, self._received_bytes

    def acknowledge(self) -> None:
        """Tells the worker what is safe; if that cannot be told now it is told with the next commit."""
        if self.safe > self.acknowledged and self.send(encode(Ack(self.safe))) is Sent.SENT:
            self.acknowledged, self._acknowledged_bytes = self.safe, self._safe_bytes

    def send(self, frame: bytes) -> Sent:
        return self._frames.send([frame])

    def ask_pulse(self, content: bytes) -> bool:
        """Whether it could be asked."""
        is_sent = self._pulse.send([content]) is Sent.SENT
        self._owed += is_sent
        return is_sent

    def pulse_answered(self) -> None:
        self._owed -= 1
        if self._owed < 0:
            raise LineFault("it answered a pulse that was not sent")

    def drain(self) -> None:
        """Receives all frames that were sent until now."""
        self._frames.drain()


class Words:
    """Words of one attempt without anything between them, in their place among what happened."""

    __slots__ = ("_taken", "attempt", "line", "texts", "turn")

    def __init__(self, line: Line, turn: str, attempt: int, taken: Callable[["Words"], None]) -> None:
        self.line = line
        self.turn = turn
        self.attempt = attempt
        self._taken = taken
        self.texts: list[str] = []

    def take(self) -> Spoke:
        """For the rules; what is said from here on are other words."""
        self._taken(self)
        return Spoke(self.line.who, self.turn, self.attempt, "".join(self.texts))
