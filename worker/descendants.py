"""Descendants of a worker's commands, daemons included: all of them end with the attempt.

Residents and the processes below them are the exception (residents.py).

A child keeps its pid until it is reaped, and only this process reaps it: no other process can be hit.
"""

import asyncio
import os
import signal
from pathlib import Path

from worker import residents, syscalls

# Killed processes are gone in milliseconds, half a gigabyte of memory takes a tenth of a second; after this
# time a process forks faster than it is killed, and the whole cell has to end.
_END_SECONDS_MAX = 2.0
_LOOK_AGAIN_SECONDS = 0.002

# Children whose exit status other code of this process needs; all others are adopted orphans.
_claimed: set[int] = set()
# False when an agent starts processes itself: it must find the exit status of each of them.
_reaps = True


def take_in() -> None:
    """Makes this process the parent of every descendant that loses its own."""
    syscalls.adopt_orphans()


def claim(pid: int) -> None:
    """Marks a child that the caller reaps itself and then releases."""
    _claimed.add(pid)


def let_go(pid: int) -> None:
    _claimed.discard(pid)


def leave_statuses_to_agents() -> None:
    """Reaps nothing before the end of an attempt: an adopted orphan looks like a child of the agent."""
    global _reaps
    _reaps = False


def reap() -> None:
    """Reaps the ended orphans: until then each of them counts as a process."""
    if _reaps and syscalls.adopts_orphans():
        for pid in children() - _claimed - residents.pids():
            _is_gone(pid)


async def end_all() -> bool:
    """Kills all remaining descendants but residents; returns false when that takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _END_SECONDS_MAX
    while left := [pid for pid in children() - residents.pids() if not _is_gone(pid)]:
        if loop.time() > deadline:
            return False
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return True


def children() -> set[int]:
    """Returns every child of every thread, unreaped ones too."""
    lists = (Path(f"/proc/self/task/{thread}/children") for thread in os.listdir("/proc/self/task"))
    found: set[int] = set()
    for each in lists:
        try:
            found.update(map(int, each.read_text().split()))
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended; its children have gone to another one
    return found


def _is_gone(pid: int) -> bool:
    """Reaps the child if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
