"""Frames to the supervisor: numbered from 1, kept until acknowledged, bounded by waiting."""

import asyncio
from collections import deque
from collections.abc import Callable

from ipc.codec import Encoder
from ipc.messages import FromWorker
from ipc.zmtp import Sent

# A supervisor acknowledges a batch within milliseconds; this is seconds of a fast stream, and less than the
# socket's own queue, so the socket can never be full.
UNACKNOWLEDGED_FRAMES_MAX = 1024
# The same bound for large frames; one frame may go over it, since it is checked before a frame is made.
UNACKNOWLEDGED_BYTES_MAX = 4 * 1024 * 1024

_encoder: Encoder[FromWorker] = Encoder(FromWorker)

Send = Callable[[list[bytes]], Sent]


class Outbox:
    """Frames that were sent and are not acknowledged yet. `failed` is called when one cannot be sent."""

    def __init__(self, send: Send, failed: Callable[[Sent], None]) -> None:
        self._send = send
        self._failed = failed
        self._number = 0
        self._bytes = 0
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._moved = asyncio.Event()

    @property
    def has_room(self) -> bool:
        return len(self._waiting) < UNACKNOWLEDGED_FRAMES_MAX and self._bytes < UNACKNOWLEDGED_BYTES_MAX

    def post(self, message: FromWorker) -> int:
        """Sends at once and returns the frame's number; the caller has awaited `room` before."""
        # A frame out of bounds would end this process; checked here, it ends the attempt only.
        content = _encoder.encode(message)
        self._number += 1
        self._waiting.append((self._number, content))
        self._bytes += len(content)
        self._send_frame(self._number, content)
        return self._number

    def post_fleeting(self, message: FromWorker) -> None:
        """Sends a transient frame; without space it is left out and gets no number."""
        if self.has_room:
            self.post(message)

    async def send(self, message: FromWorker) -> int:
        await self.room()
        return self.post(message)

    async def room(self) -> None:
        while not self.has_room:
            await self._movement()

    async def acknowledged(self, frame: int) -> None:
        while self._waiting and self._waiting[0][0] <= frame:
            await self._movement()

    async def emptied(self) -> None:
        """Waits until every frame so far is acknowledged."""
        await self.acknowledged(self._number)

    def acknowledge(self, frame: int) -> None:
        while self._waiting and self._waiting[0][0] <= frame:
            self._bytes -= len(self._waiting.popleft()[1])
        self._moved.set()

    def resend(self, after: int) -> None:
        """Sends all frames after the last safe one again, in order and under the same numbers."""
        self.acknowledge(after)
        for number, content in self._waiting:
            self._send_frame(number, content)

    def _send_frame(self, number: int, content: bytes) -> None:
        sent = self._send([number.to_bytes(8, "big"), content])
        if sent is not Sent.SENT:
            self._failed(sent)

    async def _movement(self) -> None:
        self._moved.clear()
        await self._moved.wait()
