"""The raw limits, each a process of its own: the same sockets and disk with nothing of ours in between.

`python -m bench.limits accept DIR` and `… forward DIR` listen on two sockets in DIR; `… fork PATH` forks a
child that connects to PATH whenever it reads a byte; `… echo PATH` sends back whatever arrives at PATH, and
`… commit PATH URL` does so when it has committed a row with it on a PostgreSQL server; `… victims` forks a
child for every program it reads, a file's name a line, and says its pid.
"""

import contextlib
import gc
import importlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import zmq

from ipc.places import is_listening
from tests.waiting import DEADLINE_SECONDS, until

FRAMES_MAX = 4096
# A plain number, as in ipc/sockets.py: the limit gets every trick that our path has.
_MORE = int(zmq.SNDMORE)


@contextlib.contextmanager
def raw_limit(name: str, folder: Path) -> Iterator[tuple[str, str, int]]:
    """The paths that clients and workers connect to, and the pid."""
    folder.mkdir()
    clients, workers = str(folder / "clients.sock"), str(folder / "workers.sock")
    process = subprocess.Popen([sys.executable, "-m", "bench.limits", name, str(folder)])
    try:
        until(lambda: is_listening(clients) and is_listening(workers))
        yield clients, workers, process.pid
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def echoing(path: Path) -> contextlib.AbstractContextManager[str]:
    """A warm process that only answers."""
    return _listening(path, "echo", str(path))


def committing(path: Path, url: str) -> contextlib.AbstractContextManager[str]:
    """A process that answers when what arrived is durable on the server: a hop, a commit and a hop."""
    return _listening(path, "commit", str(path), url)


@contextlib.contextmanager
def _listening(path: Path, *limit: str) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.limits", *limit])
    try:
        until(lambda: is_listening(str(path)))
        yield str(path)
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def echo(path: Path) -> None:
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind(f"ipc://{path}")
    while True:
        socket.send_multipart(socket.recv_multipart())


def commit(path: Path, url: str) -> None:
    # Here, since no other limit needs it.
    psycopg = importlib.import_module("psycopg")
    server = psycopg.connect(url, autocommit=True)
    server.execute("CREATE TABLE IF NOT EXISTS hop_message (id bigserial PRIMARY KEY, key text, text text)")
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind(f"ipc://{path}")
    while True:
        identity, key, text = socket.recv_multipart()
        server.execute("INSERT INTO hop_message (key, text) VALUES (%s, %s)", (key.decode(), text.decode()))
        socket.send_multipart([identity, key])


def accept(folder: Path) -> None:
    """A message in, one durable row, a message out: what no supervisor with these promises can beat."""
    clients, workers = _routers(folder)
    journal = sqlite3.connect(folder / "raw.db", isolation_level=None)
    journal.execute("PRAGMA journal_mode = WAL")
    journal.execute("PRAGMA synchronous = FULL")
    journal.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, key BLOB, text BLOB)")
    worker = workers.recv_multipart()[0]
    while True:
        _, key, text = clients.recv_multipart()
        journal.execute("BEGIN IMMEDIATE")
        journal.execute("INSERT INTO message (key, text) VALUES (?, ?)", (key, text))
        journal.execute("COMMIT")
        workers.send_multipart([worker, text])


def forward(folder: Path) -> None:
    """Frames of a worker go to its client untouched, drained as they come."""
    clients, workers = _routers(folder)
    here: set[bytes] = set()
    to_client: dict[bytes, bytes] = {}
    while True:
        workers.poll()
        with contextlib.suppress(zmq.Again):
            while True:
                identity, number, frame = workers.recv_multipart(zmq.NOBLOCK)
                client = to_client.get(identity)
                if client is not None:
                    clients.send(client, _MORE)
                    clients.send(number, _MORE)
                    clients.send(frame)
                    continue
                # A worker's first frame names its client, who must be there before it can be sent anything.
                while frame not in here:
                    here.add(clients.recv_multipart()[0])
                to_client[identity] = frame


def victims() -> None:
    """Each as warm as a worker, and reaped by the kernel."""
    _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            exec(Path(line.strip()).read_text())
        print(child, flush=True)


def _warm_up() -> None:
    # Here, since the other limits have nothing of ours in them.
    importlib.import_module("worker.worker_main")
    importlib.import_module("worker.warm_up").rehearse()
    gc.collect()
    gc.freeze()


def fork(path: Path) -> None:
    """As warm as the zygote: for every byte a child that says it is ready, for every child's end a byte."""
    _warm_up()
    os.write(1, b"w")
    while os.read(0, 1):
        child = os.fork()
        if child == 0:
            _be_ready(path)
        os.waitpid(child, 0)
        os.write(1, b"e")


def _be_ready(path: Path) -> NoReturn:
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(f"ipc://{path}")
    socket.send(b"ready")
    socket.recv()
    os._exit(0)


def _routers(folder: Path) -> "tuple[zmq.Socket[bytes], zmq.Socket[bytes]]":
    context = zmq.Context()
    made = []
    for name in ("clients", "workers"):
        socket = context.socket(zmq.ROUTER)
        socket.set(zmq.ROUTER_MANDATORY, 1)
        socket.set(zmq.SNDHWM, FRAMES_MAX)
        socket.set(zmq.RCVHWM, FRAMES_MAX)
        socket.bind(f"ipc://{folder / name}.sock")
        made.append(socket)
    return made[0], made[1]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["victims"]:
            victims()
        case ["commit", path, url]:
            commit(Path(path), url)
        case [name, path]:
            {"accept": accept, "forward": forward, "fork": fork, "echo": echo}[name](Path(path))
