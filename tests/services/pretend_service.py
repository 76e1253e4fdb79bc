"""A service that behaves as its options say: the real protocol, without a model behind it.

Run as a module by the supervisor's own code; `behaviour` is one of the functions below.
"""

import ctypes
import os
import signal
import subprocess
import sys

import msgspec

from ipc.codec import encode
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import BlockingSocket, Wire
from ipc.stt_messages import Transcribed


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != start.parent_pid:
        sys.exit("orphan")
    behaviours[start.options["behaviour"]](start, Wire().blocking(start.endpoint, start.identity))


def serve(start: ServiceStart, socket: BlockingSocket) -> None:
    socket.send([encode(ServiceState("warming", detail="loading"))])
    address = start.options.get("address", f"pretend:{os.getpid()}")
    socket.send([encode(ServiceState("ready", address=address))])
    beat(socket)


def beat(socket: BlockingSocket) -> None:
    while True:
        socket.send([encode(Beat())])
        socket.receive(0.05)


def crash(start: ServiceStart, socket: BlockingSocket) -> None:
    sys.exit("these are my last words")


def never_ready(start: ServiceStart, socket: BlockingSocket) -> None:
    beat(socket)


def fail(start: ServiceStart, socket: BlockingSocket) -> None:
    socket.send([encode(ServiceState("failed", detail="it has no weights", hint="give it some"))])
    beat(socket)


def deaf(start: ServiceStart, socket: BlockingSocket) -> None:
    """Serves, and cannot be asked to end; neither can its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    socket.send([encode(ServiceState("ready", address=str(child.pid)))])
    beat(socket)


def talk(start: ServiceStart, socket: BlockingSocket) -> None:
    """Answers one frame with the words of a clip, then beats."""
    socket.send([encode(ServiceState("ready"))])
    heard = socket.receive(None)
    assert heard is not None
    socket.send([encode(Transcribed("clip", heard[0].decode(), "en", 1.0))])
    beat(socket)


def babble(start: ServiceStart, socket: BlockingSocket) -> None:
    socket.send([encode(ServiceState("ready"))])
    socket.send([b"\x01not a message"])
    beat(socket)


def tell_environment(start: ServiceStart, socket: BlockingSocket) -> None:
    seen = " ".join([*sys.argv, *map("=".join, os.environ.items())])
    socket.send([encode(ServiceState("ready", detail=seen))])
    beat(socket)


behaviours = {
    one.__name__: one for one in (serve, crash, never_ready, fail, deaf, talk, babble, tell_environment)
}

if __name__ == "__main__":
    main()
