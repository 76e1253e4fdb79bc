"""A process that has imported everything and forks programs for the tests.

`python -m tests.fork_server FD` forks supervisors, workers and others, `… FD hermesctl` only that one.

A supervisor takes half a second of processor time to import what it needs, its zygote more than a second, and
the suite starts hundreds. Here all is imported once, and a fork becomes what `python -m MODULE …` becomes:

- It is a child of the test process, not of this one (CLONE_PARENT), so the test can wait for it, and parent,
  signals and exit status are as after an exec.
- It has the session, folder, environment and descriptors that were ordered, and /proc shows its own arguments
  and environment (PR_SET_MM_MAP).
- It runs the module with runpy, as the interpreter does. Only what the module imports is there already.

A supervisor starts its zygote by an exec, which would import everything again. So each supervisor has one
fork made ahead, before it has any thread: a child that becomes its first zygote by the same rules. Every
further zygote, and every service, is executed as usual.
"""

import asyncio
import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import os
import pkgutil
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import msgspec

from supervisor.journal import migrate
from supervisor.processes import zygote_client
from tests.warm import DESCRIPTORS_MAX, HERMESCTL, ISOLATED, ORDER_BYTES_MAX, Order, Popen
from worker import syscalls

_CLONE_PARENT = 0x00008000
_CLONE_CHILD_CLEARTID = 0x00200000
_CLONE_CHILD_SETTID = 0x01000000
_SYS_CLONE3 = 435
_PR_SET_MM = 35
_PR_SET_MM_MAP = 14
_PR_GET_TID_ADDRESS = 40
_NO_FILE = 0xFFFFFFFF
# Where descriptors lie while those below take their places.
_ABOVE_ALL = 200
_ZYGOTE = "worker.zygote"

_libc = ctypes.CDLL(None, use_errno=True)
# Keeps the interpreter lock: a child made while it is released would wait for it for ever.
_libc_with_lock = ctypes.PyDLL(None, use_errno=True)
# The texts that the kernel shows as this process's arguments and environment; they must stay where they are.
_shown: list[ctypes.Array[ctypes.c_char]] = []


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    syscalls.die_with_parent(signal.SIGKILL)
    _preload(sys.argv[2:])
    order = _serve(line)
    if order is not None:
        _run(order)


def _become(order: Order, descriptors: Sequence[int]) -> None:
    """All that an exec would change, but for the memory."""
    _place(descriptors, order.places)
    if order.new_session:
        os.setsid()
    if order.takes_terminal:
        os.close(os.open(os.ttyname(0), os.O_RDWR))
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    sys.orig_argv[:] = order.line
    sys.argv[:] = order.run
    if not sys.flags.safe_path:
        further = order.environment.get("PYTHONPATH")
        # The server's own path begins with its folder and its PYTHONPATH, which is one folder.
        sys.path[:2] = [order.folder, *(further.split(os.pathsep) if further else ())]
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    _show(order.line, order.environment)


def _preload(program: Sequence[str]) -> None:
    """Imports for one program, or for those that are started isolated, as this process was, or by hand."""
    gc.disable()
    if program:
        _preload_hermesctl()
    else:
        _preload_agents()
    gc.collect()
    gc.freeze()
    gc.enable()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in every fork"


def _preload_hermesctl() -> None:
    hermesctl = importlib.import_module(HERMESCTL)
    for found in pkgutil.walk_packages(hermesctl.__path__, f"{HERMESCTL}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def _preload_agents() -> None:
    if sys.flags.safe_path:
        importlib.import_module("supervisor.entry")
        # What a supervisor imports and reads later, at its start.
        with contextlib.suppress(ImportError, OSError, RuntimeError):
            importlib.import_module("pyseccomp")
        migrate.steps()
        # Tests start it by itself, too.
        importlib.import_module("gateway.__main__")
    importlib.import_module("worker.worker_main")
    agents = importlib.import_module("worker.agents")
    rehearsal = importlib.import_module("worker.agents.rehearsal")
    # Not on libuv's loop: libuv keeps a pipe for all loops of a process, and would not notice these forks.
    names = vars(rehearsal)
    own_loop, names["new_event_loop"] = names["new_event_loop"], asyncio.new_event_loop
    agents.load(agents.BUILTIN).rehearse()
    names["new_event_loop"] = own_loop
    # A worker of a test has the kind that its turn names.
    vars(agents)["_loaded"].kind = None
    _rehearse_no_more(importlib.import_module("worker.warm_up"), agents)


def _rehearse_no_more(warm_up: ModuleType, agents: ModuleType) -> None:
    """Zygotes that become of forks find the built-in agent rehearsed; agents of other kinds they rehearse."""
    rehearse = warm_up.rehearse

    def rehearse_others(kind: str, entry: str, code: Sequence[str]) -> None:
        if kind == agents.BUILTIN:
            agents.load(kind, entry, code)
        else:
            rehearse(kind, entry, code)

    vars(warm_up)["rehearse"] = rehearse_others


def _serve(line: socket.socket) -> Order | None:
    """Returns in every process it makes, with its order; here when the tests are over."""
    while (taken := _take(line)) is not None:
        order, descriptors = taken
        child = _fork_beside()
        if child == 0:
            line.close()
            _become(order, descriptors)
            return order
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(msgspec.msgpack.encode(child))
    return None


def _take(line: socket.socket) -> tuple[Order, list[int]] | None:
    """The next order; None when nobody can send one any more."""
    frame, descriptors, _, _ = socket.recv_fds(line, ORDER_BYTES_MAX, DESCRIPTORS_MAX)
    return (msgspec.msgpack.decode(frame, type=Order), descriptors) if frame else None


def _run(order: Order) -> NoReturn:
    """Runs the module and ends as the interpreter would; a memory of this size is not taken apart before."""
    module = order.run[0]
    if module.endswith("supervisor"):
        _keep_zygote_ahead()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code: object = 0
    except SystemExit as end:
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


class _ZygoteAhead(Popen[bytes]):
    """The first zygote is the fork made ahead; whatever else is started is executed."""

    pid_ahead = 0
    line: socket.socket | None = None

    def _start(self, start: tuple[str, ...], order: Order, descriptors: Sequence[int]) -> int | None:
        line = self.line
        if line is None or start != ISOLATED or order.run[0] != _ZYGOTE:
            return None
        _ZygoteAhead.line = None
        with line:
            socket.send_fds(line, [msgspec.msgpack.encode(order)], list(descriptors))
        return self.pid_ahead


def _keep_zygote_ahead() -> None:
    """Forks the first zygote of the supervisor that this process becomes."""

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        ours.close()
        syscalls.die_with_parent(signal.SIGKILL)
        taken = _take(theirs)
        if taken is None:
            os._exit(0)
        theirs.close()
        _become(*taken)
        _run(taken[0])
    theirs.close()
    _ZygoteAhead.pid_ahead, _ZygoteAhead.line = child, ours
    names = vars(zygote_client)
    assert names["subprocess"] is subprocess, "the zygote is started by other means now"
    names["subprocess"] = SimpleNamespace(Popen=_ZygoteAhead, DEVNULL=subprocess.DEVNULL)


def _fork_beside() -> int:
    """Like os.fork, but the child's parent is this process's own; the C library learns the child's id."""
    thread_id = ctypes.c_uint64()
    _check(_libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(thread_id), 0, 0, 0), "prctl(GET_TID_ADDRESS)")
    flags = _CLONE_PARENT | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
    # struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, then what belongs to threads.
    arguments = (ctypes.c_uint64 * 11)(flags, 0, thread_id.value)
    ctypes.pythonapi.PyOS_BeforeFork()
    child = int(_libc_with_lock.syscall(_SYS_CLONE3, arguments, ctypes.c_size_t(ctypes.sizeof(arguments))))
    if child == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return _check(child, "clone3")


def _place(descriptors: Sequence[int], places: Sequence[int]) -> None:
    """Gives each descriptor its number; first out of the way, for one's place may be another's."""
    above = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE_ALL) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, place in zip(above, places, strict=True):
        os.dup2(descriptor, place)
        os.close(descriptor)


def _show(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Lets /proc show these as the arguments and the environment of this process."""
    texts = ("\0".join(arguments), "\0".join(f"{name}={value}" for name, value in environment.items()))
    _shown[:] = [ctypes.create_string_buffer(os.fsencode(text)) for text in texts]
    bounds = [
        address
        for buffer in _shown
        for address in (ctypes.addressof(buffer), ctypes.addressof(buffer) + len(buffer))
    ]
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start_code, end_code, start_stack = (int(field) for field in fields[23:26])
    start_data, end_data, start_brk = (int(field) for field in fields[42:45])
    _libc.sbrk.restype = ctypes.c_void_p
    map_bytes = struct.pack(
        "=12Q2I",
        *(start_code, end_code, start_data, end_data, start_brk, _libc.sbrk(ctypes.c_long(0)), start_stack),
        *(*bounds, 0, 0, _NO_FILE),
    )
    _check(_libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, map_bytes, ctypes.c_ulong(len(map_bytes)), 0), "prctl(MM)")


def _check(result: int, call: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    main()
