"""An idle worker's own memory, beside one executed from nothing; and its first turn beside its second.

Memory is what would be free again if the process ended (USS), after a collection; with its keeper, if there
is one. An idle worker of the kind python, whose entry imports next to nothing, stands beside a builtin one.
Turns run through the whole service against a model server on loopback.
"""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import uvloop

from bench.goals import Outcome, rounds_asked, tell
from bench.host import Host, opened
from bench.idle_worker import COLLECTED
from ipc.codec import encode
from ipc.messages import Event
from ipc.service_messages import CellSpec, Fork
from supervisor.processes.zygote_client import Program
from tests.fake_model import FakeModel
from tests.processes.stage import name_of
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, soon, until

TITLE = "A worker's weight beside an executed one, and its first turn beside its second"
ROUNDS = 12
_PROGRAM = Program(run="bench.idle_worker")
_PYTHON = replace(_PROGRAM, kind="python", entry="textwrap:dedent")
# A worker is replaced after its second turn, so that every odd turn is the first of a fresh one.
_WORKERS = "count = 1\nspares = 0\nturns_max = 2"


async def forked_bytes(host: Host) -> int:
    started = await host.start()
    await collected(started.pid, host.places.logs / "worker-0.log")
    held = own_bytes(started.pid)
    if name_of(parent := parent_of(started.pid)) == "hermes-keeper":
        held += own_bytes(parent)
    await host.kill()
    return held


async def executed_bytes(host: Host, log: Path) -> int:
    began: list[subprocess.Popen[bytes]] = []
    await host.ready(lambda: began.append(execute(host, log)))
    await collected(began[0].pid, log)
    held = own_bytes(began[0].pid)
    began[0].kill()
    began[0].wait(DEADLINE_SECONDS)
    return held


def execute(host: Host, log: Path) -> "subprocess.Popen[bytes]":
    frames, pulse = host.connect()
    numbers = (frames.fileno(), pulse.fileno())
    fork = Fork(1, 0, 0, str(log), CellSpec("sweep"), b"", *numbers)
    with log.open("wb") as output, frames, pulse:
        command = [sys.executable, "-m", "bench.idle_worker"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, pass_fds=numbers
        )
    assert process.stdin is not None
    with process.stdin as order:
        order.write(encode(fork))
    return process


async def collected(pid: int, log: Path) -> None:
    os.kill(pid, signal.SIGUSR1)
    await soon(lambda: COLLECTED in log.read_text())


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def own_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


async def memory(home: Path, rounds: int) -> Outcome:
    held: tuple[list[float], list[float]] = ([], [])
    async with opened(home, _PROGRAM) as host:
        for _ in range(rounds):
            held[0].append(await forked_bytes(host) / 2**20)
            held[1].append(await executed_bytes(host, home / "executed.log") / 2**20)
    return Outcome("memory of an idle worker", *held, "MiB", "at most", 0.2)


async def memory_of_python(home: Path, rounds: int) -> Outcome:
    held: tuple[list[float], list[float]] = ([], [])
    async with opened(home / "python", _PYTHON) as ours, opened(home / "builtin", _PROGRAM) as builtin:
        for _ in range(rounds):
            held[0].append(await forked_bytes(ours) / 2**20)
            held[1].append(await forked_bytes(builtin) / 2**20)
    return Outcome("memory of an idle worker, python beside builtin", *held, "MiB", "at most", 1.2)


def turns(home: Path, rounds: int) -> Outcome:
    spent: tuple[list[float], list[float]] = ([], [])
    with FakeModel() as model, Service(home, settings_for(model, workers=_WORKERS)) as service:
        for number in range(2 * rounds):
            until(lambda: [row["state"] for row in service.show("workers")] == ["idle"])
            spent[number % 2].append(turn_ms(service, f"session-{number}"))
    return Outcome("first turn against the second", *spent, "ms", "at most", 3)


def turn_ms(service: Service, session: str) -> float:
    """From the attempt's opening to the turn's end, as the supervisor wrote them down."""
    listener = service.listen(session)
    service.say(session, "Say a few words, as ever.")
    ended = listener.ending(f"{session}/1")
    opened: Event = listener.of_type("attempt.opened")[0]
    assert ended.type == "turn.done", ended
    return (ended.at - opened.at) * 1000


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        few = max(3, rounds // 4)
        return [
            uvloop.run(memory(home / "host", few)),
            uvloop.run(memory_of_python(home, few)),
            turns(home / "service", rounds),
        ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
