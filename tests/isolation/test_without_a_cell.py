"""Each attack opens where its wall is really absent: the same list, run by the same user outside any cell."""

import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermesctl.doctor.baits import laid
from hermesctl.doctor.cell_look import LOOKS, look, memory
from ipc import interpreter
from ipc.isolation import Result, Targets, Trial
from tests.fake_model import FakeModel
from tests.isolation.surroundings import (
    ORDINARY,
    ROOT_USER,
    SECRET,
    OwnedService,
    Person,
    folder_of,
    targets_in,
)
from tests.raw_server import raw_server
from tests.service import Service
from worker.attacks import __main__ as attacks
from worker.attacks import socket_attacks
from worker.attacks.attack_table import FUNCTIONS
from worker.attacks.outcome import Outcome

SECONDS = 120
# An ordinary user has no such power anywhere, on a kernel as distributions set it up.
ROOT_ONLY = {
    "cgroups",
    "interpreter",
    "pth file",
    "program",
    "file handles",
    "devices",
    "second mounts",
}
# Whether an ordinary user may is a switch of the kernel or of the host.
SWITCHED = {"user namespace", "mount", "BPF", "perf", "userfaultfd", "io_uring", "kernel log", "tracing"}


@contextmanager
def victim(person: Person) -> Iterator[int]:
    """A process below another one, as a worker and its keeper are: any of its user may reach both."""
    line = [*person.line, "sh", "-c", "sleep 1000 & echo $!; wait"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        worker = int(keeper.stdout.readline())
        try:
            yield worker
        finally:
            os.kill(worker, signal.SIGKILL)


def attacked(person: Person, targets: Targets, *before: str) -> dict[str, Result]:
    text = msgspec.json.encode(targets).decode()
    done = subprocess.run(
        [*before, *person.line, *interpreter.command("worker.attacks", text)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, SECRET: "x"},
    )
    assert done.returncode == 0, done.stderr
    return {result.name: result for result in msgspec.json.decode(done.stdout, type=Trial).results}


@contextmanager
def trusting_database() -> Iterator[str]:
    """Lets every role in, in the words of PostgreSQL's protocol."""

    def serve() -> None:
        line, _ = listener.accept()
        with line:
            line.recv(1024)
            line.sendall(b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def completed(targets: Targets, service: Service, worker: int, model: FakeModel, database: str) -> Targets:
    """With what the supervisor and the worker would add; this model needs no key."""
    return msgspec.structs.replace(
        targets,
        keys=(str(service.home.parent / "key"),),
        model=model.base_url,
        memory_bytes_max=1 << 20,
        processes_max=20,
        files_max=64,
        worker=worker,
        databases=(database,),
        role="hermes",
        database="hermes",
    )


def mounted_also(service: Service) -> list[str]:
    """A shell in which the state folder lies at a second path, before it becomes what follows."""
    other = service.home.parent / "second"
    other.mkdir()
    line = f'mount --bind "{service.home}" "{other}" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", line, "sh"]


@pytest.mark.parametrize("person", [ROOT_USER, ORDINARY], ids=["root", "ordinary"])
def test_every_attack_opens_where_there_is_no_wall(person: Person, monkeypatch: Any) -> None:
    if not person.can_run_this():
        pytest.skip("an ordinary user cannot run this interpreter, or not read these files")
    with (
        FakeModel() as model,
        folder_of(person) as folder,
        OwnedService(folder, person, model, workers="count = 1") as service,
        targets_in(folder / "baits", person) as variables,
        victim(person) as worker,
        trusting_database() as database,
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        before = mounted_also(service) if person == ROOT_USER else []
        with laid(service.places, service.status()["pid"], service.show("workers"), []) as targets:
            found = attacked(person, completed(targets, service, worker, model, database), *before)
    opened = {name for name, result in found.items() if result.verdict == "open"}
    unavailable = set() if person == ROOT_USER else {"home folder", *ROOT_ONLY, *SWITCHED}
    assert set(found) == set(FUNCTIONS)
    assert set(FUNCTIONS) - opened <= unavailable, [found[name] for name in set(FUNCTIONS) - opened]
    assert "broken" not in {result.verdict for result in found.values()}


def test_a_model_server_that_wants_a_key_is_held() -> None:
    def refusal() -> Iterator[bytes]:
        yield b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

    with raw_server(refusal) as server:
        assert socket_attacks.model(Targets(model=server.base_url)).verdict == "held"
        assert b"uthorization" not in server.heard[0]


def test_whose_a_process_is_and_what_limits_it_is_seen_from_outside() -> None:
    def seen(worker: int) -> dict[str, str]:
        return {result.name: result.verdict for result in look(worker, os.getpid())}

    own = seen(os.getpid())
    assert tuple(own) == LOOKS
    assert own["other user"] == "open"
    assert own["root"] == ("open" if os.geteuid() == 0 else "held")
    if ORDINARY.can_run_this():
        with victim(ORDINARY) as worker:
            assert seen(worker) | {"memory": ""} == {"root": "held", "other user": "held", "memory": ""}


def test_memory_is_limited_where_the_cgroup_says_so(tmp_path: Path) -> None:
    assert memory(None).verdict == memory(tmp_path).verdict == "open"
    for written, verdict in (("max\n", "open"), ("1073741824\n", "held")):
        (tmp_path / "memory.max").write_text(written)
        assert memory(tmp_path).verdict == verdict


def test_an_attack_that_hangs_or_breaks_is_told_as_broken(monkeypatch: Any) -> None:
    def hangs(targets: Targets) -> Outcome:
        signal.pause()
        raise AssertionError("a signal came")

    def breaks(targets: Targets) -> Outcome:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(attacks, "_SECONDS_MAX", 0.2)
    monkeypatch.setitem(FUNCTIONS, "state", hangs)
    monkeypatch.setitem(FUNCTIONS, "keys", breaks)
    assert attacks.tried("state", Targets()) == Result("state", "broken", "it did not end by itself")
    assert attacks.tried("keys", Targets()) == Result("keys", "broken", "RuntimeError: no such thing")
