"""Orphans that this process adopts: ended with all below them, recorded meanwhile, and reaped in time."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from supervisor.processes import procfs
from supervisor.processes.adoption import Adoption
from supervisor.processes.orphans import Record
from tests.processes.stage import children_here, play, reap, until
from worker.syscalls import adopt_orphans

Act = Callable[[Adoption, set[int]], Awaitable[None]]
# Each of the shells has a child of its own; the one that starts them has ended.
_ORPHANS = "sh -c 'sleep 1000; true' & sh -c 'sleep 1000; true' &"


def adopting(act: Act) -> None:
    """`act` gets the adoption, and the children that this process had before."""

    async def run() -> None:
        mine = children_here()
        adoption = Adoption(lambda: mine, lambda: ())
        adoption.open("sweep")
        try:
            await act(adoption, mine)
        finally:
            adoption.close()
            adopt_orphans(False)
            strangers = children_here() - mine
            for pid in strangers:
                procfs.kill(living(pid))
            reap(strangers)

    play(run())


def living(pid: int) -> procfs.Process:
    found = procfs.status(pid)
    return found.process if found else procfs.NO_PROCESS


async def orphans(mine: set[int]) -> set[int]:
    """Two processes that have become children of this one; each has one below it."""
    await asyncio.to_thread(subprocess.run, _ORPHANS, shell=True, check=True)
    await until(lambda: len(children_here() - mine) == 2, "two adopted processes")
    found = children_here() - mine
    await until(lambda: all(len(procfs.children(living(pid))) == 1 for pid in found), "one below each")
    return found


def is_dead(pid: int) -> bool:
    found = procfs.status(pid)
    return found is None or not found.is_alive


def test_h11_adopted_processes_are_ended_and_in_the_record_until_then(tmp_path: Path) -> None:
    async def act(adoption: Adoption, mine: set[int]) -> None:
        adopted = await orphans(mine)
        below = {child for pid in adopted for child in procfs.children(living(pid))}
        record = Record(tmp_path / "processes")
        await adoption.end_all(record, "a-workspace")
        assert all(map(is_dead, adopted | below))
        lines = [line.split() for line in record.file.read_text().splitlines()[1:]]
        assert {int(pid) for pid, *_ in lines} >= adopted
        assert {workspace for _, _, workspace in lines} == {"a-workspace"}
        record.close()
        assert not record.file.exists(), "nothing is left to be ended by another supervisor"

    adopting(act)


def test_an_adopted_process_that_has_ended_is_reaped_at_the_second_look_and_not_during_a_kill() -> None:
    """One that was started here has been reaped by its owner by then."""

    async def act(adoption: Adoption, mine: set[int]) -> None:
        adopted = await orphans(mine)
        for pid in adopted:
            procfs.kill(living(pid))
        await until(lambda: all(map(is_dead, adopted)), "their end")
        adoption._look()
        assert children_here() >= adopted
        adoption._ending += 1
        adoption._look()
        assert children_here() >= adopted
        adoption._ending -= 1
        adoption._look()
        assert not children_here() & adopted

    adopting(act)


def test_where_the_kernel_ends_all_nothing_is_adopted_and_nothing_is_proved(tmp_path: Path) -> None:
    async def act() -> None:
        for adoption, cell in (
            (Adoption(None, lambda: ()), "sweep"),
            (Adoption(lambda: (), lambda: ()), "pidns"),
        ):
            adoption.open(cell)
            ending = asyncio.create_task(adoption.end_all(Record(tmp_path / "processes"), ""))
            done, _ = await asyncio.wait([ending], timeout=0.05)
            assert not done
            ending.cancel()
            adoption.close()
        assert not (tmp_path / "processes").exists()

    play(act())


def test_what_was_ended_is_reaped_afterwards(tmp_path: Path) -> None:
    async def act(adoption: Adoption, mine: set[int]) -> None:
        adopted = await orphans(mine)
        await adoption.end_all(Record(tmp_path / "processes"), "")
        adoption._look()
        assert children_here() >= adopted
        adoption._look()
        assert not children_here() & adopted

    adopting(act)


def test_a_closed_adoption_looks_no_more() -> None:
    async def act(adoption: Adoption, mine: set[int]) -> None:
        adoption.close()
        assert adoption._timer is not None
        assert adoption._timer.cancelled()

    adopting(act)
