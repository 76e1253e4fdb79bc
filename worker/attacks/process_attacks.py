"""Processes that a cell should not reach: the supervisor, other workers, those that are to end the cell."""

import ctypes
import errno
import os
from pathlib import Path

from ipc.isolation import Running, Targets
from worker.attacks import raw_calls
from worker.attacks.outcome import Outcome, absent, any_of, held

# More generations than lie between a worker and the first process of a host.
_ABOVE_MAX = 32


def signals(targets: Targets) -> Outcome:
    """Signal 0 tells whether a signal could be sent."""
    if not targets.outside:
        return absent("no process was named")
    within = [str(each.pid) for each in targets.outside if not _is_another(each)]
    return any_of(within, _signal, "") if within else held("none of them is in sight")


def tracing(targets: Targets) -> Outcome:
    if not targets.outside:
        return absent("no process was named")
    within = [str(each.pid) for each in targets.outside if not _is_another(each)]
    return any_of(within, _peek, "") if within else held("none of them is in sight")


def worker_memory(targets: Targets) -> Outcome:
    """The worker holds the model's key; commands of the agent run as the same user."""
    return any_of([str(targets.worker)] if targets.worker else [], _peek, "no worker was named")


def keeper(targets: Targets) -> Outcome:
    """The processes between this worker and the supervisor: they end everything that the worker leaves."""
    above: list[str] = []
    outside = {each.pid for each in targets.outside}
    pid = _parent(targets.worker)
    while pid > 1 and pid not in outside and len(above) < _ABOVE_MAX:
        above.append(str(pid))
        pid = _parent(pid)
    return any_of(above, _signal, "") if above else held("none of them is in sight")


def _is_another(wanted: Running) -> bool:
    """True when the pid names another process here, as it does in a namespace of its own."""
    try:
        text = Path(f"/proc/{wanted.pid}/stat").read_text()
    except OSError:
        return False
    return int(text[text.rindex(")") + 2 :].split()[19]) != wanted.started


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2 :].split()[1])


def _signal(pid: str) -> None:
    os.kill(int(pid), 0)


def _peek(pid: str) -> None:
    """Reads one byte at an invalid address: a process that may read gets EFAULT."""
    here = ctypes.create_string_buffer(1)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(here), 1)
    remote = (ctypes.c_uint64 * 2)(0, 1)
    outcome = raw_calls.refused("process_vm_readv", int(pid), local, 1, remote, 1, 0)
    if outcome.verdict != "open":
        raise OSError(errno.EPERM, outcome.seen)
