"""An STT service that does with a clip what stands in its file: the real protocol, without a model behind it.

A clip holds one word, one of the cases below; `hang` begins and never ends, `mute` does not even begin. The
first try leaves a mark beside the clip.
"""

import ctypes
import os
import select
import signal
import sys
from pathlib import Path

import msgspec

from ipc.codec import Decoder, encode
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import BlockingSocket, Wire
from ipc.stt_messages import Forget, NotTranscribed, ToStt, Transcribe, Transcribed, TranscriptProgress

SLOW_SECONDS = 0.4


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != start.parent_pid:
        sys.exit("orphan")
    socket = Wire().blocking(start.endpoint, start.identity)
    mended = Path(start.options["mended"])
    if start.options["fails"] and not mended.exists():
        socket.send([encode(ServiceState("failed", detail="it has no weights", hint="give it some"))])
        serve(socket, mended, deaf=True)
    socket.send([encode(ServiceState("ready"))])
    serve(socket, mended, deaf=False)


def serve(socket: BlockingSocket, mark: Path, deaf: bool) -> None:
    """A clip that is forgotten leaves a mark beside `mark`."""
    decoder: Decoder[ToStt] = Decoder(ToStt)
    while True:
        socket.send([encode(Beat())])
        parts = socket.receive(0.05)
        if parts is None or deaf:
            continue
        order = decoder.decode(parts[0])
        if isinstance(order, Forget):
            mark.with_name(f"{order.message}forgotten").touch()
        else:
            hear(socket, order)


def hear(socket: BlockingSocket, order: Transcribe) -> None:
    path = Path(order.path)
    what = path.read_text()
    assert order.bytes == len(what)
    mark = path.with_name(f"{path.name}tried")
    is_first = not mark.exists()
    mark.touch()
    if what != "mute":
        socket.send([encode(TranscriptProgress(order.message, 0.0, 60.0))])
    match what:
        case "words":
            socket.send([encode(Transcribed(order.message, " the words ", "en", 3.0))])
        case "slow":
            select.select([], [], [], SLOW_SECONDS)
            socket.send([encode(Transcribed(order.message, "the words", "en", 3.0))])
        case "blank":
            socket.send([encode(Transcribed(order.message, "  ", "en", 3.0))])
        case "nothing":
            socket.send([encode(NotTranscribed(order.message, "it is a picture", "send sound"))])
        case "again":
            socket.send([encode(NotTranscribed(order.message, "the server is away", "wait", again=True))])
        case "again-once" if not is_first:
            socket.send([encode(Transcribed(order.message, "the words", "en", 3.0))])
        case "again-once":
            socket.send([encode(NotTranscribed(order.message, "the server is away", "wait", again=True))])
        case "long":
            socket.send([encode(TranscriptProgress(order.message, 30.0, 60.0, "the first half"))])
            socket.send([encode(Transcribed(order.message, "the first half and the second", "en", 60.0))])
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "crash-once" if is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash-once":
            socket.send([encode(Transcribed(order.message, "the words", "en", 3.0))])


if __name__ == "__main__":
    main()
