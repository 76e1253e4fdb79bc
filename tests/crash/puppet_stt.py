"""The process of the STT service as a puppet: inside the supervisor's process, on the real socket.

It does what stands in the clip: `hear WORDS` gives the words, `mumble` gives none, `drone` never ends.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from ipc.codec import Decoder, encode
from ipc.messages import Beat, Message
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import Wire
from ipc.stt_messages import NotTranscribed, ToStt, Transcribe, Transcribed, TranscriptProgress

_BEAT_SECONDS = 1.0


class PuppetStt:
    """In place of a Child of the services."""

    def __init__(self, orders: ServiceStart, ended: Callable[[int], None]) -> None:
        self.pid = orders.incarnation
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._decoder: Decoder[ToStt] = Decoder(ToStt)
        self._wire = Wire()
        self._socket = self._wire.dealer(orders.endpoint, orders.identity, self._receive)
        self._say(ServiceState("ready"))
        self._beat()

    @classmethod
    def start(
        cls,
        module: str,
        orders: ServiceStart,
        log: Path,
        environment: Iterable[str],
        ended: Callable[[int], None],
    ) -> "PuppetStt":
        return cls(orders, ended)

    def ask_to_end(self) -> None:
        self._end(0)

    def kill(self) -> None:
        self._end(-signal.SIGKILL)

    def bound_log(self) -> None:
        """It writes none."""

    def last_words(self) -> str:
        return ""

    def _end(self, status: int) -> None:
        self._beating.cancel()
        self._wire.close()
        self._loop.call_soon(self._ended, status)

    def _beat(self) -> None:
        self._say(Beat())
        self._beating = self._loop.call_later(_BEAT_SECONDS, self._beat)

    def _say(self, message: Message) -> None:
        self._socket.send([encode(message)])

    def _receive(self, parts: list[bytes]) -> None:
        order = self._decoder.decode(parts[0])
        if isinstance(order, Transcribe):
            self._hear(order)

    def _hear(self, order: Transcribe) -> None:
        verb, _, words = Path(order.path).read_text().partition(" ")
        self._say(TranscriptProgress(order.message, 0.0, 3.0))
        if verb == "hear":
            self._say(Transcribed(order.message, words, "en", 3.0))
        elif verb == "mumble":
            self._say(NotTranscribed(order.message, "nothing was understood", "speak up"))
