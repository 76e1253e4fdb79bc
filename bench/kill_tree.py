"""A whole tree of processes, killed again and again: how fast, and how many of it live on.

The tree has all that is known to escape: grandchildren, sessions of their own, a daemon forked twice, one
that forks on and on, one that ignores every signal, a stopped one, one that holds the output. It is killed as
each cell does it, and for comparison as it is usually done: `killpg`, and a walk over the children by psutil.
Whether any lives on is asked of the kernel: all hold the same FIFO open, and its reader is told when nobody
does. A look at /proc can miss one that forks on and on: survivors are counted when that one is at rest.

`--rivals PYTHON` adds what others do to a task that is to end at once, in an interpreter that has them. What
is left of theirs is counted when the framework itself has been shut down as well.
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from bench.report import percentile, table
from bench.rivals import RIVALS, TOLD
from supervisor.processes import procfs
from tests.processes.stage import KINDS, MARK, Stage, marked, script
from tests.waiting import DEADLINE_SECONDS

TITLE = "A tree of processes, killed"
ROUNDS = 200
RIVAL_ROUNDS = 5
# Links of the chain that forks on and on: some hundred milliseconds of it, then its last one stays.
_CHAIN = 200
_REST_SECONDS = 0.4
# A framework starts, runs the tree, ends it and is shut down; twice what each step of it may take.
_RIVAL_SECONDS_MAX = 120.0
TREE = f"""
held = os.open(FIFO, os.O_WRONLY)
os.set_inheritable(held, True)

def forked(act):
    if os.fork() == 0:
        act()
        signal.pause()
        os._exit(0)

def daemon():
    os.setsid()
    if os.fork():
        os._exit(0)

def chain():
    for _ in range({_CHAIN}):
        if os.fork():
            os._exit(0)

def ignore_all():
    for number in set(signal.Signals) - {{signal.SIGKILL, signal.SIGSTOP}}:
        signal.signal(number, signal.SIG_IGN)

forked(lambda: forked(lambda: forked(lambda: None)))
forked(os.setsid)
forked(daemon)
forked(ignore_all)
forked(lambda: os.kill(os.getpid(), signal.SIGSTOP))
subprocess.Popen(["sleep", "1000"], stdout=1, stderr=2, close_fds=False)
forked(chain)
"""

End = Callable[["subprocess.Popen[bytes]"], None]


@dataclass(slots=True)
class Found:
    """What was seen of one way to kill."""

    spent_ms: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    survivors: list[int] = field(default_factory=list)

    def row(self, name: str) -> list[str]:
        rounds = len(self.spent_ms)
        left = sum(1 for count in self.survivors if count)
        times = [f"{percentile(self.spent_ms, share):.1f}" for share in (0.5, 0.99)]
        processes = f"{percentile(self.processes, 0.5)}" if self.processes else ""
        return [name, str(rounds), processes, *times, f"{left} of {rounds}", str(sum(self.survivors))]


class Witness:
    """The reading end of a FIFO that every process of a tree holds open."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / secrets.token_hex(4)
        os.mkfifo(self.path)
        self._reading = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def program(self) -> str:
        return script(f"FIFO = {str(self.path)!r}", TREE)

    def all_dead(self) -> bool:
        """End of file, which the kernel tells when the last holder is gone."""
        try:
            return os.read(self._reading, 1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._reading)
        self.path.unlink()


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def walk(process: "subprocess.Popen[bytes]") -> None:
    """The children first, as psutil finds them, then the parent."""
    top = psutil.Process(process.pid)
    family = [*top.children(recursive=True), top]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


USUAL: dict[str, End] = {"killpg": kill_group, "psutil walk": walk}


def usual(end: End, folder: Path, found: Found) -> None:
    """Starts the tree as a child of this process in a session of its own, and ends it in the usual way."""
    mark, witness = secrets.token_hex(8), Witness(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", witness.program + "\nsignal.pause()"],
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
        found.processes.append(len(marked(mark)))
        began = time.perf_counter()
        end(process)
        found.spent_ms.append((time.perf_counter() - began) * 1000)
    # What was hit is given time to die, and the chain to come to rest: only what lives on is to be counted.
    time.sleep(_REST_SECONDS)
    found.survivors.append(0 if witness.all_dead() else max(1, len(marked(mark))))
    clear(mark, witness)


def rival(name: str, python: str, folder: Path, found: Found) -> str:
    """Runs the tree in another framework; its version, or why there is nothing to tell."""
    mark, witness = secrets.token_hex(8), Witness(folder)
    program, up, said = (folder / f"{mark}.{kind}" for kind in ("py", "up", "said"))
    program.write_text(f"{witness.program}\nopen({str(up)!r}, 'w').close()")
    try:
        # Into a file: survivors hold the output, and nobody shall wait for the end of theirs.
        with said.open("wb") as output:
            status = subprocess.run(
                [python, str(Path(__file__).with_name("rivals.py")), name, str(program), str(up)],
                env={**os.environ, MARK: mark},
                stdout=output,
                stderr=output,
                timeout=_RIVAL_SECONDS_MAX,
                check=False,
            ).returncode
        time.sleep(_REST_SECONDS)
        left = 0 if witness.all_dead() else max(1, len(marked(mark)))
    finally:
        clear(mark, witness)
    lines = said.read_text(errors="replace").splitlines() or [""]
    told = [line.removeprefix(TOLD).split() for line in lines if line.startswith(TOLD)]
    if status != 0 or not told:
        return lines[-1]
    found.spent_ms.append(float(told[0][1]))
    found.survivors.append(left)
    return told[0][0]


def rivals(python: str, rounds: int) -> list[list[str]]:
    """A row each; of one that is not there, how to get it."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in RIVALS:
            found = Found()
            words = ""
            for _ in range(rounds):
                words = rival(name, python, Path(folder), found)
            rows.append(found.row(f"{name} {words}") if found.spent_ms else [f"{name}: {words}", *[""] * 6])
    return rows


def clear(mark: str, witness: Witness) -> None:
    """Ends the survivors by their mark, until the kernel says that there are none."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not witness.all_dead():
        left = marked(mark)
        assert time.monotonic() < deadline, f"{len(left)} processes cannot be ended"
        for pid in left:
            found = procfs.status(pid)
            if found is not None:
                procfs.kill(found.process)
        time.sleep(0.001)
    witness.close()


async def in_cell(stage: Stage, folder: Path, found: Found) -> None:
    witness = Witness(folder)
    started = await stage.start(witness.program)
    assert not witness.all_dead()
    died = await stage.kill(started.incarnation)
    # Asked at once: the report itself says that nobody is left.
    found.survivors.append(0 if witness.all_dead() else max(1, len(stage.strangers())))
    found.processes.append(died.proof.processes)
    found.spent_ms.append(died.proof.ms)
    witness.close()


@contextlib.asynccontextmanager
async def stages(home: Path) -> AsyncIterator[dict[str, Stage]]:
    """One host for every kind of cell that works here."""
    async with contextlib.AsyncExitStack() as stack:
        opened: dict[str, Stage] = {}
        for kind in KINDS:
            with contextlib.suppress(pytest.skip.Exception):
                opened[kind] = await stack.enter_async_context(Stage(home / kind, kind))
        yield opened


async def compare(home: Path, rounds: int) -> dict[str, Found]:
    seen: dict[str, Found] = {}
    fifos = home / "fifos"
    fifos.mkdir()
    async with stages(home) as cells:
        for _ in range(rounds):
            for kind, stage in cells.items():
                await in_cell(stage, fifos, seen.setdefault(f"{kind} cell", Found()))
            for name, end in USUAL.items():
                usual(end, fifos, seen.setdefault(name, Found()))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS, help=f"how often ({ROUNDS})")
    parser.add_argument(
        "--rivals", metavar="PYTHON", help="an interpreter with other frameworks, tried as well"
    )
    parser.add_argument("--rival-rounds", type=int, default=RIVAL_ROUNDS, help=f"how often ({RIVAL_ROUNDS})")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(compare(Path(folder), asked.rounds))
    rows = [found.row(name) for name, found in seen.items()]
    rows += rivals(asked.rivals, asked.rival_rounds) if asked.rivals else []
    heads = ["", "rounds", "processes", "p50 ms", "p99 ms", "rounds with survivors", "survivors"]
    table(TITLE, [heads, *rows])


if __name__ == "__main__":
    main()
