"""The gateway beside raw servers and a direct subscriber: CPU and memory of streams, latency, acceptance.

The supervisor is the real one; its worker is played here, so that a delta is sent when it is wanted. Both
servers of a comparison stream at the same time, so that every window sees the same machine.
"""

import contextlib
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from bench.accept import Played, receive
from bench.gateway_servers import EVENTS_PER_SECOND
from bench.goals import Outcome, rounds_asked, tell
from bench.limits import echoing
from bench.pretend import pretend_service
from bench.report import percentile, table
from ipc.codec import Decoder, encode
from ipc.messages import Answer, Assign, Delta, Show, Submit, Subscribe, Table, ToWorker
from ipc.places import Places
from ipc.sockets import BlockingSocket, Wire
from tests.gateway.gateway_process import GatewayProcess
from tests.waiting import DEADLINE_SECONDS, until

TITLE = "The gateway, beside a bare streamer, raw ASGI, and a direct client"
CLIENTS = (500, 2_000)
HISTORY = 1_280
# Rounds of latency and acceptance; windows of the streams take a tenth of it.
ROUNDS = 300
_WINDOW_SECONDS = 4.0
_PATIENCE_SECONDS = 120.0
_IDLE_LOOKS = 300
# While readers return: a client that asks without pause would itself be the load that delays the loop.
_LOOKS_PER_SECOND = 20
# As many requests as one token may send at once (gateway/limiter.py).
_READERS_PER_TOKEN = 400
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_answer: Decoder[Answer] = Decoder(Answer)
_to_worker: Decoder[ToWorker] = Decoder(ToWorker)


class Readers:
    """A process with many readers of one path."""

    def __init__(self, address: str, path: str, secret: str, count: int) -> None:
        port = address.rpartition(":")[2]
        line = [sys.executable, "-m", "bench.gateway_readers", port, path, secret, str(count)]
        self._count = count
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def connected(self) -> "Readers":
        """Returns when all of them have an answer."""
        until(lambda: self.counts()[0] == self._count, _PATIENCE_SECONDS)
        return self

    def counts(self) -> tuple[int, int, int]:
        """How many are connected, their events together, and the least that one has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        connected, events, least = map(int, self._process.stdout.readline().split())
        return connected, events, least

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Worker:
    """The played worker: it has one turn of the session `stream` and sends a delta when it is told to."""

    def __init__(self, wire: Wire, places: Places) -> None:
        self._played = Played(wire, places, 1)
        client = wire.blocking(places.control, "bench-opens")
        client.send([(1).to_bytes(8), encode(Submit("stream", "Go on.", "stream"))])
        while not isinstance(message := _to_worker.decode(receive(self._played.socket)[-1]), Assign):
            pass
        self._turn = message.turn
        self._offset = 0

    def speak(self) -> None:
        self._played.post(Delta("stream", self._turn, 1, self._offset, " word"))
        self._offset += 5
        while self._played.socket.receive(0) is not None:
            pass

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Speaks as often as the raw servers do, in a thread; nothing else may use the worker meanwhile."""
        ended = threading.Event()

        def speak() -> None:
            while not ended.wait(1 / EVENTS_PER_SECOND):
                self.speak()

        thread = threading.Thread(target=speak)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextlib.contextmanager
def raw_server(kind: str) -> Iterator[tuple[str, int]]:
    line = [sys.executable, "-m", "bench.gateway_servers", kind]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process.pid
    finally:
        process.kill()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def stream_costs(gateway: GatewayProcess, worker: Worker, clients: int, windows: int) -> list[Outcome]:
    """CPU for each delivered event, and memory of each client."""
    assert gateway.process is not None
    path, pid = "/api/sessions/stream/events", gateway.process.pid
    with raw_server("bare") as (bare, bare_pid), raw_server("asgi") as (asgi, asgi_pid):
        before = [memory_bytes(each) for each in (pid, asgi_pid)]
        secrets = [gateway.token(f"bench-{clients}-{n}") for n in range(0, clients, _READERS_PER_TOKEN)]
        share = clients // len(secrets)
        # As many processes for each server: a write to one that sleeps also pays for waking it.
        sides = {
            pid: [Readers(gateway.address, path, secret, share).connected() for secret in secrets],
            asgi_pid: [Readers(asgi, "/", "", share).connected() for _ in secrets],
            bare_pid: [Readers(bare, "/", "", share).connected() for _ in secrets],
        }
        costs: dict[int, list[float]] = {each: [] for each in sides}
        with worker.speaking():
            for _ in range(windows):
                began = {each: (cpu_seconds(each), _events(readers)) for each, readers in sides.items()}
                time.sleep(_WINDOW_SECONDS)
                for each, readers in sides.items():
                    spent, events = cpu_seconds(each) - began[each][0], _events(readers) - began[each][1]
                    costs[each].append(spent / max(1, events) * 1e6)
        grown = [
            (memory_bytes(each) - old) / clients / 1024
            for each, old in zip((pid, asgi_pid), before, strict=True)
        ]
        for readers in sides.values():
            for one in readers:
                one.close()
    named = f"{clients:,} clients"
    return [
        Outcome(f"CPU an event, {named}", costs[pid], costs[bare_pid], "µs", "at most", 2.5),
        Outcome(f"raw ASGI the same, {named}", costs[asgi_pid], costs[bare_pid], "µs", "at most", None),
        Outcome(f"memory a client, {named}", grown[:1], grown[1:], "KiB", "at most", 3.0),
    ]


def _events(readers: list[Readers]) -> int:
    return sum(each.counts()[1] for each in readers)


def latency(
    gateway: GatewayProcess, wire: Wire, worker: Worker, echo_path: str, rounds: int
) -> list[Outcome]:
    """How much later a delta arrives through the gateway than at a direct subscriber."""
    direct = wire.blocking(gateway.places.control, "bench-direct")
    direct.send([(1).to_bytes(8), encode(Subscribe("stream"))])
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    echo = wire.blocking(echo_path, "bench-echo")
    times: dict[str, list[float]] = {"direct": [], "gateway": [], "echo": []}
    with socket.create_connection((host, int(port))) as line:
        head = "GET /api/sessions/stream/events HTTP/1.1\r\nHost: localhost\r\n"
        line.sendall(f"{head}Authorization: Bearer {gateway.first_secret}\r\n\r\n".encode())
        _drain(line, direct)

        def at_direct() -> None:
            while not isinstance(_answer.decode(receive(direct)[-1]), Delta):
                pass

        def at_gateway() -> None:
            while b"data: " not in _received(line):
                pass

        # In turn one of the two is looked at first: the other has arrived meanwhile.
        orders = ({"direct": at_direct, "gateway": at_gateway}, {"gateway": at_gateway, "direct": at_direct})
        for number in range(2 * rounds):
            (first, arrive), (_, drain) = orders[number % 2].items()
            began = time.perf_counter()
            worker.speak()
            arrive()
            times[first].append((time.perf_counter() - began) * 1000)
            drain()
            began = time.perf_counter()
            echo.send([b"x" * 200])
            receive(echo)
            times["echo"].append((time.perf_counter() - began) * 1000)
    usual = statistics.median(times["direct"])
    added = [each - usual for each in times["gateway"]]
    return [Outcome("added to a delta, of an ipc round trip", added, times["echo"], "ms", "at most", 2.0)]


def _received(line: socket.socket) -> bytes:
    data = line.recv(65536)
    assert data, "the gateway has ended the connection"
    return data


def _drain(line: socket.socket, direct: BlockingSocket) -> None:
    """Until both are quiet: what was there before is not measured."""
    line.settimeout(1.0)
    with contextlib.suppress(TimeoutError):
        while line.recv(1 << 20):
            pass
    line.settimeout(DEADLINE_SECONDS)
    while direct.receive(0.1) is not None:
        pass


def acceptance(gateway: GatewayProcess, wire: Wire, rounds: int) -> list[Outcome]:
    client = wire.blocking(gateway.places.control, "bench-accepts")
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    ours, direct = [], []
    with socket.create_connection((host, int(port))) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(rounds):
            body = b'{"text": "What is the time?"}'
            head = (
                f"POST /api/sessions/posted-{number}/messages HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {gateway.first_secret}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            began = time.perf_counter()
            line.sendall(head.encode() + body)
            answer = b""
            while not answer.endswith(b"}"):
                answer += _received(line)
            ours.append((time.perf_counter() - began) * 1000)
            assert answer.startswith(b"HTTP/1.1 202"), answer[:200]
            began = time.perf_counter()
            request = Submit(f"direct-{number}", "What is the time?", f"key-{number}")
            client.send([number.to_bytes(8), encode(request)])
            receive(client)
            direct.append((time.perf_counter() - began) * 1000)
    return [Outcome("accepted over HTTP, of a direct submit", ours, direct, "ms", "at most", 1.5)]


def returning(gateway: GatewayProcess, wire: Wire) -> None:
    """All readers return from 0 at once: what the supervisor's answers take meanwhile."""
    client = wire.blocking(gateway.places.control, "bench-returns")
    for number in range(HISTORY):
        client.send([number.to_bytes(8), encode(Submit("stream", "x" * 100, f"old-{number}", "queue"))])
        receive(client)

    def look() -> float:
        began = time.perf_counter()
        _rows(client, "status")
        return (time.perf_counter() - began) * 1000

    idle_lags = _lags(client)
    idle = [look() for _ in range(_IDLE_LOOKS)]
    before = _lags(client)
    beside = subprocess.Popen(
        [sys.executable, "-m", "bench.idle_loop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    _delays(beside)
    looks: list[float] = []
    clients = CLIENTS[-1]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1 / _LOOKS_PER_SECOND):
            looks.append(look())

    thread = threading.Thread(target=watch)
    path = "/api/sessions/stream/events?after=0"
    secrets = [gateway.token(f"returning-{n}") for n in range(0, clients, _READERS_PER_TOKEN)]
    pids = _rows(client, "status")[0]["pid"], beside.pid
    began, scheduled = time.perf_counter(), [_scheduled(pid) for pid in pids]
    thread.start()
    readers = [Readers(gateway.address, path, secret, clients // len(secrets)) for secret in secrets]
    until(lambda: all(each.counts()[2] >= HISTORY for each in readers), _PATIENCE_SECONDS)
    took = time.perf_counter() - began
    ours, idles = (
        [f"{(new - old) / took / 1e6:.0f}" for old, new in zip(olds, _scheduled(pid), strict=True)]
        for olds, pid in zip(scheduled, pids, strict=True)
    )
    ended.set()
    thread.join()
    after, delays = _lags(client), _delays(beside)
    beside.kill()
    beside.communicate()
    for each in readers:
        each.close()
    busy = f"{clients:,} readers return"
    rows = [
        ["", "p50", "p99"],
        ["status answered, idle, ms", *_both(idle)],
        [f"status answered, {busy}, ms", *_both(looks)],
        ["lag of the loop, idle, ms, at most", *_lag_quantiles(idle_lags, before)],
        [f"lag of the loop, {busy}, ms, at most (goal: 50)", *_lag_quantiles(before, after)],
        ["lag of an idle loop beside it meanwhile, ms", *_both(delays)],
    ]
    table(f"{clients:,} readers of {HISTORY:,} events from 0, all read after {took:.1f} s", rows)
    head = ["ms of each second in which its thread", "ran", "waited for a CPU"]
    table("", [head, ["supervisor", *ours], ["idle loop", *idles]])


def _rows(client: BlockingSocket, what: Literal["status", "metrics"]) -> list[dict[str, Any]]:
    """All rows of a table: metrics have several pages."""
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        client.send([(1).to_bytes(8), encode(Show(what, after=after))])
        page = _answer.decode(receive(client)[-1])
        assert isinstance(page, Table)
        rows += page.rows
        after = page.more
        if not after:
            return rows


def _lags(client: BlockingSocket) -> dict[float, float]:
    """How often the supervisor's loop was late by at most so many seconds, since its start."""
    text = "".join(str(row["text"]) for row in _rows(client, "metrics"))
    found = re.findall(r'^hermes_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', text, re.MULTILINE)
    return {float(bound): float(count) for bound, count in found}


def _scheduled(pid: int) -> tuple[int, int]:
    """How long the main thread of a process has run, and was ready to run without a CPU, in nanoseconds."""
    ran, waited, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(ran), int(waited)


def _delays(loop: "subprocess.Popen[str]") -> list[float]:
    """Of the loop that has nothing else to do, since the last call."""
    assert loop.stdin is not None
    assert loop.stdout is not None
    loop.stdin.write("?\n")
    loop.stdin.flush()
    return list(map(float, loop.stdout.readline().split()))


def _lag_quantiles(before: dict[float, float], after: dict[float, float]) -> list[str]:
    grown = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    total = max(grown.values(), default=0.0)
    if not total:
        return ["-", "-"]
    return [f"{min(b for b, n in grown.items() if n >= total * q) * 1000:g}" for q in (0.5, 0.99)]


def _both(values: list[float]) -> list[str]:
    return [f"{percentile(values, share):.2f}" for share in (0.5, 0.99)]


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        wire = Wire()
        with (
            pretend_service(Path(folder) / "home", 1) as (places, _),
            echoing(Path(folder) / "echo.sock") as echo_path,
            GatewayProcess(places) as gateway,
        ):
            worker = Worker(wire, places)
            found = latency(gateway, wire, worker, echo_path, rounds)
            found += acceptance(gateway, wire, rounds)
            for clients in CLIENTS:
                found += stream_costs(gateway, worker, clients, max(2, rounds // 100))
            returning(gateway, wire)
        wire.close()
    return found


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
