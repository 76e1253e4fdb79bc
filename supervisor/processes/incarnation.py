"""One process in a seat, from the order to start it until its death is reported."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from supervisor.processes.cells import Held
from supervisor.processes.handed import HandedWorker
from supervisor.processes.nursery import Nursery
from supervisor.processes.tree import Process


class Phase(StrEnum):
    WAITING = "waiting"  # for a warm zygote
    ASKED = "asked"
    HELD = "held"
    ENDING = "ending"


@dataclass(slots=True)
class Worker:
    """What the process room knows of an incarnation."""

    seat: int
    incarnation: int
    identity: str
    log: Path
    begun_at: float
    nursery: Nursery
    phase: Phase = Phase.WAITING
    held: Held | None = None
    pid: int = 0
    status: int | None = None
    kill_asked_at: float | None = None
    kill_words: str = "killed by the supervisor"

    def hand_over(self) -> HandedWorker | None:
        """For the next image of the supervisor; None when it is not up, or on its way out."""
        if self.phase is not Phase.HELD or self.held is None or not self.pid:
            return None
        os.set_inheritable(self.held.pidfd, True)
        return HandedWorker(
            self.seat,
            self.incarnation,
            self.identity,
            str(self.log),
            self.begun_at,
            self.pid,
            self.held.keeper.pid,
            self.held.keeper.started,
            self.held.pidfd,
            self.nursery.guard,
        )

    @classmethod
    def take_over(cls, handed: HandedWorker, nursery: Nursery) -> "Worker":
        os.set_inheritable(handed.keeper_pidfd, False)
        keeper = Process(handed.keeper, handed.keeper_started)
        worker = cls(
            handed.seat, handed.incarnation, handed.identity, Path(handed.log), handed.begun_at, nursery
        )
        worker.phase = Phase.HELD
        worker.held = Held(handed.incarnation, keeper, handed.keeper_pidfd)
        worker.pid = handed.pid
        return worker
