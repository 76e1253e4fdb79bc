"""One worker process, from the order to start it until its death is reported.

    waiting ── a fork order is sent ──► asked ── Forked ──► held ── killed, or its keeper ended ──► ending
    waiting ── killed, or no cell ────────────────────────► reported dead, with an empty proof
    asked ──── ForkFailed, or the zygote is lost ─────────► reported dead, with an empty proof
    ending ─── the cell is proved empty ──────────────────► reported dead, with its proof

Invariants: each incarnation is reported dead exactly once. It is reported started only when both the keeper
(Forked) and the worker (Running) are known, and never after a kill was requested. A kill in `asked` is
carried out when Forked arrives. There is no way back to an earlier phase: a seat gets a new incarnation.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ipc.service_messages import Fork, Sandbox
from supervisor.core.proof import Cancelled
from supervisor.core.reasons import EndReason, Reason
from supervisor.handoff.carried_workers import HandedWorker
from supervisor.processes.cells import Held
from supervisor.processes.procfs import Process
from supervisor.processes.seccomp import tools_filter
from supervisor.processes.spawner import Spawner

KILLED = Reason(EndReason.KILLED)

_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Phase(StrEnum):
    WAITING = "waiting"  # for a warm zygote
    ASKED = "asked"
    HELD = "held"
    ENDING = "ending"


@dataclass(slots=True)
class Worker:
    """State of one incarnation in Processes."""

    seat: int
    incarnation: int
    log: Path
    begun_at: float
    spawner: Spawner
    memory_bytes_max: int
    sandbox: Sandbox
    has_setup: bool = False
    phase: Phase = Phase.WAITING
    held: Held | None = None
    pid: int = 0
    workspace: str = ""  # the name of its session's folder, once it has one
    status: int | None = None
    lost: Reason | None = None  # why its zygote is gone
    kill_asked_at: float | None = None
    kill_reason: Reason = KILLED
    cancel: Cancelled = ""

    @property
    def level(self) -> str:
        """Return how much of the host its cell shows. Only namespaces can show less than all of it."""
        return self.sandbox.level if self.spawner.cell.name == "pidns" else "host"

    def ended_by(self, own: Reason) -> Reason:
        """Return why it ended: `own` as its process shows it, unless it was ended with the host's lease."""
        is_of_lease = self.lost is not None and self.lost.kind is EndReason.LEASE_GIVEN_UP
        return self.lost if self.lost is not None and is_of_lease else own

    def open_log(self) -> int:
        """Empty its log; return the descriptor."""
        return os.open(self.log, _LOG_FLAGS, 0o600)

    def order(self, epoch: int) -> Fork:
        """Return the fork order for the zygote."""
        return Fork(
            epoch=epoch,
            seat=self.seat,
            incarnation=self.incarnation,
            log_path=str(self.log),
            cell=self.spawner.spec(self.incarnation, self.sandbox),
            tools_filter=tools_filter() if self.sandbox.network == "none" else b"",
            has_setup=self.has_setup,
        )

    def hand_over(self) -> HandedWorker | None:
        """Hand over to the next image of the supervisor; None when it has not started or is ending."""
        if self.phase is not Phase.HELD or self.held is None or not self.pid:
            return None
        os.set_inheritable(self.held.pidfd, True)
        return HandedWorker(
            self.seat,
            self.incarnation,
            str(self.log),
            self.begun_at,
            self.pid,
            self.held.keeper.pid,
            self.held.keeper.started,
            self.held.pidfd,
            self.spawner.guard,
            self.memory_bytes_max,
            self.sandbox,
            self.held.leaf,
            self.workspace,
        )

    @classmethod
    def take_over(cls, handed: HandedWorker, spawner: Spawner) -> "Worker":
        os.set_inheritable(handed.keeper_pidfd, False)
        keeper = Process(handed.keeper, handed.keeper_started)
        worker = cls(
            handed.seat,
            handed.incarnation,
            Path(handed.log),
            handed.begun_at,
            spawner,
            handed.memory_bytes_max,
            handed.sandbox,
        )
        worker.phase = Phase.HELD
        worker.held = Held(handed.incarnation, keeper, handed.keeper_pidfd, handed.leaf)
        worker.pid, worker.workspace = handed.pid, handed.workspace
        return worker
