"""The thread in which foreign code answers a turn: it may block, and nothing of it is left at the end.

The worker's loop goes on beside it. At the end of a turn nothing of the turn may be left, or it could act on
the next one: its processes are ended, and a worker in which the agent left a thread serves no other turn
(`Attempt.has_left_threads`).
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable

from worker import descendants, log
from worker.agents.context import Host
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.tools import spawn

# Answers the turn through the host, in the agent's thread.
Work = Callable[[Host], None]

# Time for threads that are about to end, such as those of an executor that was shut down.
_THREADS_SECONDS_MAX = 0.5
_LOOK_AGAIN_SECONDS = 0.005

# How the agent ended: its error, or None.
_Ended = asyncio.Future[BaseException | None]


async def run(attempt: Attempt, agent: str, load: Callable[[], Work]) -> None:
    """Runs `load`, then the work that it returns; threads that `load` starts may stay."""
    descendants.leave_statuses_to_agents()
    host = Host(attempt)
    ended: _Ended = asyncio.get_running_loop().create_future()
    before = set(threading.enumerate())
    thread = threading.Thread(target=_run, args=(host, agent, load, before, ended), name="agent", daemon=True)
    thread.start()
    await asyncio.wait((ended, host.ending), return_when=asyncio.FIRST_COMPLETED)
    try:
        if host.ending.done():
            attempt.has_left_threads = True
            await host.ending
        if (error := await ended) is not None:
            raise error
    finally:
        host.close()
        attempt.has_left_threads = attempt.has_left_threads or await _are_left(before)


def _run(
    host: Host, agent: str, load: Callable[[], Work], before: set[threading.Thread], ended: _Ended
) -> None:
    """In the agent's thread: runs it, and passes on how it ended."""
    error: BaseException | None = None
    try:
        spawn.restrict_this_thread()
        work = load()
        before.update(threading.enumerate())  # with those that its module keeps
        work(host)
    except Exception as fault:
        error = fault
    except BaseException as fault:
        # SystemExit and its like are for a process of the agent's own.
        error = AgentError(
            f"the agent {agent!r} raised {type(fault).__name__}", "let it return instead of exiting"
        )
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the agent may have closed or replaced it
            stream.flush()
    ended.get_loop().call_soon_threadsafe(ended.set_result, error)


async def _are_left(before: set[threading.Thread]) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _THREADS_SECONDS_MAX
    while any(thread not in before for thread in threading.enumerate()):
        if loop.time() > deadline:
            return True
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return False


def divert_output(agent: str, file: str = "") -> None:
    """Sends standard output and error nowhere, or to the file: what an agent prints may quote a person.

    The worker's own log goes on beside them.
    """
    log.keep_stream()
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        output = os.open(file, flags, 0o600) if file else os.open(os.devnull, os.O_WRONLY)
    except OSError as error:
        raise AgentError(
            f"the output of the agent {agent!r} cannot be written: {error.strerror}",
            f"set [agents.{agent}] output to the name of a file in the workspace, or remove it",
        ) from None
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)


def has_text(attempt: Attempt) -> bool:
    """Returns whether this attempt at the turn, or one before it, has said something."""
    return any(text.strip() for text in (attempt.text, *(past.text for past in attempt.assign.tried)))
