"""Attacks on the supervisor's sockets, from a cell, a worker and clients: only the attacker is ended."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipc.codec import encode
from ipc.messages import Subscribe
from ipc.server import CONNECTIONS_MAX
from ipc.zmtp import OPENING
from tests.acceptance.sight import shell, worker_of
from tests.fake_model import FakeModel
from tests.raw_client import sent_as
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

HOSTILE = "tests.acceptance.hostile_supervisor"
# Far above what a busy service allocates for good, far below what any of the attacks sends.
FLAT_BYTES = 48 << 20
# Other clients of the test, and a worker that is started meanwhile.
FLAT_DESCRIPTORS = 24
GREETING = OPENING[:64] + b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"

# Connects to every Unix socket it can find by looking or by name, 1,500 times each and then until it is
# refused; holds all of it until the file `go` is there.
_FLOOD = """
import os, socket, subprocess, sys, time
mark, runtime = sys.argv[1:]
files = ("control.sock", "services.sock", "line.sock", "workers/frames.sock", "workers/pulse.sock")
names = {f"{runtime}/{file}" for file in files}
names |= {line.split()[-1] for line in open("/proc/net/unix") if runtime in line}
find = ["find", "/", "-path", "/proc", "-prune", "-o", "-type", "s", "-print"]
names |= set(subprocess.run(find, capture_output=True, text=True).stdout.split())
held, reached = [], set()
def connect(name):
    one = socket.socket(socket.AF_UNIX)
    one.setblocking(False)
    try:
        one.connect(name)
    except OSError:
        one.close()
        return False
    held.append(one)
    reached.add(name)
    return True
for name in sorted(names):
    for _ in range(1500):
        if not connect(name):
            break
try:
    while any([connect(name) for name in sorted(reached)]):
        pass
except OSError as error:
    print(error.strerror)
print("tried", len(names), "reached", len(reached), "holds", len(held), flush=True)
# A folder, for that needs no descriptor.
os.mkdir(mark + "/flooded")
while not os.path.exists(mark + "/go"):
    time.sleep(0.05)
"""


def pid_of(service: Service) -> int:
    assert service.process is not None
    return service.process.pid


def memory_bytes(service: Service) -> int:
    pages = int(Path(f"/proc/{pid_of(service)}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors(service: Service) -> int:
    return len(os.listdir(f"/proc/{pid_of(service)}/fd"))


def answers(service: Service, session: str) -> None:
    """Another session is served as ever."""
    service.say(session, "hello")
    assert service.listen(session).ending(f"{session}/1").fields["text"] == "You said: hello"


class Peaks:
    """Looks at memory and descriptors of a service all the time, from a thread of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._before = memory_bytes(service), descriptors(service)
        self._most = self._before
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Peaks":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def memory_grown(self) -> int:
        return self._most[0] - self._before[0]

    @property
    def descriptors_grown(self) -> int:
        return self._most[1] - self._before[1]

    def _look(self) -> None:
        while not self._end.wait(0.02):
            with contextlib.suppress(OSError):
                now = memory_bytes(self._service), descriptors(self._service)
                self._most = max(self._most[0], now[0]), max(self._most[1], now[1])


def test_h4_connections_from_a_cell_are_felt_by_nobody(
    make_service: Callable[..., Service], model: FakeModel, shared: Path
) -> None:
    service = make_service(workers="count = 2", sandbox=f'write = ["{shared}"]')
    answers(service, "warm")
    (shared / "flood.py").write_text(_FLOOD)
    with Peaks(service) as peaks:
        service.say("demo", shell(f"python3 {shared}/flood.py {shared} {service.places.runtime}"))
        until((shared / "flooded").exists)
        for number in range(3):
            answers(service, f"other-{number}")
        (shared / "go").touch()
        ended = service.listen("demo").ending("demo/1")
    assert ended.type == "turn.done"
    told = str(model.requests()[-1].messages[-1]["content"])
    assert "reached 0 holds 0" in told
    assert peaks.descriptors_grown < FLAT_DESCRIPTORS
    assert peaks.memory_grown < FLAT_BYTES


@pytest.mark.parametrize("attack", [signal.SIGUSR1, signal.SIGUSR2])
def test_h5_a_worker_that_ends_no_message_is_ended_by_name(
    make_service: Callable[..., Service], attack: signal.Signals
) -> None:
    service = make_service(HOSTILE, workers="count = 2")
    answers(service, "warm")
    service.say("demo", "[[stall tokens=1]]")
    listener = service.listen("demo")
    listener.until(lambda: listener.words)
    with Peaks(service) as peaks:
        os.kill(worker_of(service, "demo"), attack)
        listener.until(lambda: listener.of_type("attempt.lost"))
        answers(service, "other")
    assert "it sent a message of more than" in listener.of_type("attempt.lost")[0].fields["reason"]
    assert peaks.memory_grown < FLAT_BYTES
    assert service.status()["pid"] == pid_of(service)


def connected(path: str, greeting: bytes = GREETING) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(DEADLINE_SECONDS)
    peer.connect(path)
    peer.sendall(greeting)
    return peer


def is_cut(peer: socket.socket) -> bool:
    try:
        while peer.recv(1 << 16):
            pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    return True


@pytest.mark.parametrize(
    "attack",
    [
        GREETING + b"\x01\x01x" * (1 << 20),
        GREETING + b"\x01\x00" * (1 << 20),
        GREETING + (b"\x03" + (1 << 20).to_bytes(8) + b"y" * (1 << 20)) * 16,
        GREETING + b"\x02" + b"\xff" * 8 + b"z" * (1 << 20),
        b"GET / HTTP/1.1\r\n" * 4096,
    ],
    ids=["parts", "empty parts", "large parts", "a length", "garbage"],
)
def test_h5_a_stranger_that_ends_no_message_is_cut(service: Service, attack: bytes) -> None:
    answers(service, "warm")
    with Peaks(service) as peaks, contextlib.ExitStack() as peers:
        for _ in range(20):
            peer = peers.enter_context(connected(service.places.control, b""))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                peer.sendall(attack)
            assert is_cut(peer)
        answers(service, "other")
    assert peaks.memory_grown < FLAT_BYTES


def test_h5_many_that_end_no_message_share_one_bound(service: Service) -> None:
    """Each stays within the bounds of one message: 100 times 7 MiB."""
    answers(service, "warm")
    unfinished = GREETING + b"\x03" + (7 << 20).to_bytes(8) + b"y" * (7 << 20)
    with Peaks(service) as peaks, contextlib.ExitStack() as peers:
        for _ in range(100):
            peer = peers.enter_context(connected(service.places.control, b""))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                peer.sendall(unfinished)
        answers(service, "other")
    assert peaks.memory_grown < (64 << 20) + FLAT_BYTES


def test_h17_followers_that_never_read_are_dropped_and_their_memory_is_freed(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(HOSTILE, workers="count = 2")
    answers(service, "warm")
    before = memory_bytes(service), descriptors(service)
    follow = GREETING + sent_as([(1).to_bytes(8), encode(Subscribe("demo"))])
    with contextlib.ExitStack() as deaf, Peaks(service) as peaks:
        for _ in range(50):
            deaf.enter_context(connected(service.places.control, follow))
        listener = service.listen("demo")
        until(lambda: descriptors(service) >= before[1] + 50)
        much = " ".join(letter * 30_000 for letter in "abcdefghijklmnopqrstuvwxyz")
        service.say("demo", much)
        assert listener.ending("demo/1").fields["text"] == listener.words == f"You said: {much}"
        until(lambda: descriptors(service) < before[1] + FLAT_DESCRIPTORS, 60)
        answers(service, "other")
        assert peaks.memory_grown < (64 << 20) + FLAT_BYTES
    until(lambda: memory_bytes(service) < before[0] + FLAT_BYTES)


# Holds as many connections as it can get, and says so; with an argument each of them introduces itself.
_CONNECTIONS = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
held = []
for _ in range(1200):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    try:
        one.sendall(bytes.fromhex(sys.argv[2]))
    except OSError:
        pass
    held.append(one)
print("holding", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def holding(path: str, greeting: bytes) -> Iterator[None]:
    line = [sys.executable, "-c", _CONNECTIONS, path, greeting.hex()]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield
        process.communicate("end\n")


@pytest.mark.parametrize("greeting", [b"", GREETING], ids=["silent", "introduced"])
def test_h17_a_client_with_a_thousand_connections_takes_no_place_from_others(
    service: Service, greeting: bytes
) -> None:
    answers(service, "warm")
    with Peaks(service) as peaks, holding(service.places.control, greeting):
        for number in range(3):
            answers(service, f"other-{number}")
        assert service.hermesctl("status").returncode == 0
        assert service.hermesctl("send", "demo", "hello").stdout == "You said: hello\n"
    assert CONNECTIONS_MAX / 2 < peaks.descriptors_grown <= CONNECTIONS_MAX + FLAT_DESCRIPTORS
    assert peaks.memory_grown < FLAT_BYTES
