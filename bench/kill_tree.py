"""A whole tree of processes, killed again and again: how fast, and how many of it live on.

The tree has all that is known to escape: grandchildren, sessions of their own, a daemon forked twice, one that
forks on and on, one that ignores every signal, a stopped one, one that holds the output. It is killed as each
cell does it, and for comparison as it is usually done: `killpg`, and a walk over the children with psutil.
Survivors are counted from outside, by a mark in the environment that all of them inherit.
"""

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

from bench.goals import rounds_asked
from bench.report import percentile, table
from supervisor.processes import tree
from tests.processes.stage import KINDS, MARK, Stage, marked, script

TITLE = "A tree of processes, killed"
ROUNDS = 200
# Links of the chain that forks on and on: some hundred milliseconds of it, then its last one stays.
_CHAIN = 200
TREE = f"""
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
subprocess.Popen(["sleep", "1000"], stdout=1, stderr=2)
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
        processes = f"{percentile(self.processes, 0.5)}"
        return [name, str(rounds), processes, *times, f"{left} of {rounds}", str(sum(self.survivors))]


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def walk(process: "subprocess.Popen[bytes]") -> None:
    """The children first, as psutil finds them, then the parent, and all are waited for."""
    top = psutil.Process(process.pid)
    family = [*top.children(recursive=True), top]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(family, timeout=1)
    process.wait()


USUAL: dict[str, End] = {"killpg": kill_group, "psutil walk": walk}


def usual(end: End, found: Found) -> None:
    """Starts the tree as a child of this process in a session of its own, and ends it in the usual way."""
    mark = secrets.token_hex(8)
    process = subprocess.Popen(
        [sys.executable, "-c", script(TREE, "os.close(1)", "signal.pause()")],
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
    found.survivors.append(len(marked(mark)))
    clear(mark)


def clear(mark: str) -> None:
    """Ends the survivors by their mark, until there are none."""
    while left := marked(mark):
        for pid in left:
            found = tree.status(pid)
            if found is not None:
                tree.kill(found.process)
        time.sleep(0.001)


async def in_cell(stage: Stage, found: Found) -> None:
    started = await stage.start(script(TREE))
    died = await stage.kill(started.incarnation)
    found.survivors.append(len(stage.strangers()))
    found.processes.append(died.proof.processes)
    found.spent_ms.append(died.proof.ms)
    assert died.proof.all_dead == (found.survivors[-1] == 0), died


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
    async with stages(home) as cells:
        for _ in range(rounds):
            for kind, stage in cells.items():
                await in_cell(stage, seen.setdefault(f"{kind} cell", Found()))
            for name, end in USUAL.items():
                usual(end, seen.setdefault(name, Found()))
    return seen


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(compare(Path(folder), rounds))
    heads = ["", "rounds", "processes", "p50 ms", "p99 ms", "rounds with survivors", "survivors"]
    table(TITLE, [heads, *(found.row(name) for name, found in seen.items())])


if __name__ == "__main__":
    main(rounds_asked(ROUNDS))
