"""`python -m stt_service`: reads its options from standard input, then transcribes until it is killed.

SIGTERM keeps its default action, which ends the process at once even while the weights load.
"""

import asyncio
import resource
import sys
from typing import TYPE_CHECKING

import msgspec

from ipc.bounds import sentence
from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.messages import Beat, Message
from ipc.parent_death import die_with
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import LoopSocket, Wire
from ipc.stt_messages import ToStt
from stt_service.options import Options

if TYPE_CHECKING:
    from stt_service.transcriber import Service

_BEAT_SECONDS = 1.0
# The same status as of a worker: the supervisor uses another version of the protocol.
_EXIT_PROTOCOL = 76


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    die_with(start.parent_pid)
    asyncio.run(serve(start))


async def serve(start: ServiceStart) -> None:
    decoder: Decoder[ToStt] = Decoder(ToStt)
    # None while the service cannot work: the supervisor then sends the orders to the next process.
    service: Service | None = None

    def receive(parts: list[bytes]) -> None:
        if service is not None:
            try:
                service.receive(decoder.decode(parts[-1]))
            except WireError as error:
                print(f"stt_service: {error.fault}", file=sys.stderr, flush=True)
                sys.exit(_EXIT_PROTOCOL)

    socket: LoopSocket = Wire().dealer(start.endpoint, start.identity, receive)

    def send(message: Message) -> None:
        socket.send([encode(message)])

    send(ServiceState("starting"))
    try:
        # Imported after the first frame, because the imports take a second. A library that cannot be loaded
        # is reported to the supervisor instead of raised.
        from stt_service import transcriber

        options = msgspec.convert(start.options, Options)
        _limit_memory(options.memory_bytes_max)
        service = transcriber.Service(options, send)
    except (ImportError, msgspec.ValidationError) as error:
        hint = (
            "pip install faster-whisper" if isinstance(error, ImportError) else "check [stt] in hermes.toml"
        )
        send(ServiceState("failed", detail=sentence(f"it cannot start: {error}"), hint=hint))
        # An exit would drop the frame with the reason; the supervisor ends this process after reading it.
        while True:
            send(Beat())
            await asyncio.sleep(_BEAT_SECONDS)
    await service.run()


def _limit_memory(bytes_max: int) -> None:
    """Lowers the limit only: the parent process may have set a tighter one."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if bytes_max and (hard == resource.RLIM_INFINITY or bytes_max < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_max, bytes_max))


if __name__ == "__main__":
    main()
