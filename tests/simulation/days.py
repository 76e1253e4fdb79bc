"""Simulated days as hypothesis runs them: how many, how long, and on which journal."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize

from supervisor.core.policy import Policy
from tests.simulation.machine import POLICIES, Cruelty
from tests.twin_journals import TwinJournals
from tests.world import World

STEPS = 50


class CrueltyOnDisk(Cruelty):
    """The same days on a real SQLite file; at their end it is compared with the journal in memory."""

    @initialize(policy=POLICIES)
    def begin(self, policy: Policy) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._journals = TwinJournals(Path(self._folder.name))
        self.world = World(policy, self._journals)
        self.world.worker_ready()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            super().teardown()
            witness = self.world.witness
            self._journals.check_alike(witness.seqs, witness.accepted)
        finally:
            self._journals.close()
            self._folder.cleanup()


def days(examples: int, steps: int = STEPS, *, derandomize: bool, shrink: bool = False) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
