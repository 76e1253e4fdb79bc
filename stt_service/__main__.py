"""`python -m stt_service`: orders on standard input, then clips until the supervisor ends it.

SIGTERM keeps its default action, which ends the process at once even while the weights load.
"""

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from ipc.codec import Decoder, encode
from ipc.hearing import ToHearing
from ipc.messages import Beat, Message, ServiceStart, ServiceState
from ipc.sockets import LoopSocket, Wire
from stt_service.life import die_with
from stt_service.options import Options

if TYPE_CHECKING:
    from stt_service.service import Service

_BEAT_SECONDS = 1.0


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    die_with(start.parent_pid)
    asyncio.run(serve(start))


async def serve(start: ServiceStart) -> None:
    decoder: Decoder[ToHearing] = Decoder(ToHearing)
    # None while it cannot work: orders are then left to the next process.
    service: Service | None = None

    def receive(parts: list[bytes]) -> None:
        if service is not None:
            service.receive(decoder.decode(parts[-1]))

    socket: LoopSocket = Wire().dealer(start.endpoint, start.identity, receive)

    def say(message: Message) -> None:
        socket.send([encode(message)])

    say(ServiceState("starting"))
    try:
        # A second of imports, behind the first word. A library that cannot be loaded is told, not a crash.
        from stt_service import service as room

        service = room.Service(msgspec.convert(start.options, Options), say)
    except (ImportError, OSError, msgspec.ValidationError) as error:
        say(ServiceState("failed", detail=f"it cannot start: {error}", hint="pip install faster-whisper"))
        # An exit would drop the frame that says why; the supervisor ends this process once it has read it.
        while True:
            say(Beat())
            await asyncio.sleep(_BEAT_SECONDS)
    await service.run()


if __name__ == "__main__":
    main()
