"""Restart in place: the process replaces its image and keeps its children, and with them running turns.

Nothing is adopted from other processes: pid, children, descriptors and the journal's lock are the same before
and after `execve`. If the next image does not start, the kernel ends the children with it, as in any crash.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from ipc.codec import VERSION
from ipc.interpreter import WORKING_DIRECTORY, command, without_code
from ipc.message_parts import Part
from supervisor.core.state import Kept, Who
from supervisor.handoff.carried_services import HandedService
from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.host.folder_identity import Identity
from supervisor.workers.link import HandedLine

_OPTION = "--handover"
# Imports and settings; a machine that needs longer is in trouble.
_CHECK_SECONDS_MAX = 30.0
_WORDS_BYTES_MAX = 2000


class Handover(Part, frozen=True):
    """All that the next image cannot find in the journal."""

    protocol: int
    epoch: int
    incarnations: int
    kept: tuple[Kept, ...]
    processes: HandedProcesses
    model: HandedService | None
    # Variables that this image removed from its environment.
    environment: dict[str, str]
    # An image of an earlier version does not send them.
    folders: dict[str, Identity] = msgspec.field(default_factory=dict)
    # Ready services other than the model; likewise.
    services: tuple[HandedService, ...] = ()
    # By incarnation of the kept workers.
    lines: dict[int, HandedLine] = msgspec.field(default_factory=dict)
    # The life of a journal on a server; "" for a file.
    life: str = ""

    def __repr__(self) -> str:
        """Omit what identifies a worker or opens the model."""
        return f"Handover(kept={len(self.kept)})"

    @property
    def model_key(self) -> str:
        """Return the key of the embedded model, which continues to serve."""
        return str(self.model.options.get("api_key", "")) if self.model else ""

    @property
    def all_services(self) -> tuple[HandedService, ...]:
        return (*((self.model,) if self.model else ()), *self.services)

    @property
    def workers(self) -> tuple[tuple[Who, HandedLine], ...]:
        """Return fence and link of every kept worker."""
        return tuple(
            (Who(self.epoch, one.seat, one.incarnation), self.lines[one.incarnation])
            for one in self.processes.workers
        )


async def fault_of_next_image(again: Sequence[str]) -> str:
    """Try the next image beside the running service; return its fault, "" when it would start.

    `again` are the arguments that name the instance.
    """
    process = await asyncio.create_subprocess_exec(
        *command("supervisor", *again, "--check"),
        cwd=WORKING_DIRECTORY,
        env=without_code(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_CHECK_SECONDS_MAX):
            words = await process.stdout.read(_WORDS_BYTES_MAX)
            status = await process.wait()
    except TimeoutError:
        return f"it did not come up within {_CHECK_SECONDS_MAX:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return "" if status == 0 else words.decode(errors="replace").strip() or f"it ended with status {status}"


def leave(handover: Handover, again: Sequence[str], lock: int) -> NoReturn:
    """Become the next image. It finds the handover in an unnamed file, and holds the journal's lock."""
    # An alarm survives `execve`.
    signal.setitimer(signal.ITIMER_REAL, 0)
    descriptor = os.memfd_create("hermes-handover", 0)
    os.set_inheritable(descriptor, True)
    os.write(descriptor, msgspec.msgpack.encode(handover))
    os.lseek(descriptor, 0, os.SEEK_SET)
    line = command("supervisor", *again, _OPTION, f"{descriptor},{lock}")
    os.execve(line[0], line, without_code({**os.environ, **handover.environment}))


def arrive(argument: str) -> tuple[Handover, int]:
    """Return the handover of the image before, and the lock. Workers of another protocol are not kept."""
    descriptor, lock = map(int, argument.split(","))
    with open(descriptor, "rb") as file:
        handover = msgspec.msgpack.decode(file.read(), type=Handover)
    lines = handover.lines if handover.protocol == VERSION else {}
    workers = tuple(one for one in handover.processes.workers if one.incarnation in lines)
    processes = msgspec.structs.replace(handover.processes, workers=workers)
    kept = tuple(one for one in handover.kept if one.incarnation in lines)
    # Options that no spec has: a service that speaks another protocol to the supervisor is replaced.
    services = tuple(
        each if handover.protocol == VERSION else msgspec.structs.replace(each, options={})
        for each in handover.services
    )
    return msgspec.structs.replace(handover, kept=kept, processes=processes, services=services), lock
