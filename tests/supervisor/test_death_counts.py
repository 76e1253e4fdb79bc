"""Ends of workers are counted by the kind of their reason."""

from pathlib import Path

import pytest

from supervisor.clock import Clock
from supervisor.core.effects import Decision, KillWorker
from supervisor.core.events import Ticked, WorkerDied
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Proof
from supervisor.telemetry.metrics import Metrics

PROOF = Proof(1, True, 1.0, "pidns")
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def counted(died: EndReason, killed: EndReason | None = None) -> str:
    """What the end of one worker is counted as, after a kill for that reason if there was one."""
    metrics = Metrics(Clock(), lambda: "model")
    if killed is not None:
        metrics.decided(Ticked(), Decision((), (KillWorker(0, 1, Reason(killed)),), None))
    metrics.decided(WorkerDied(0, 1, PROOF, Reason(died)), Decision((), (), None))
    (found,) = [sample for sample in metrics.worker_deaths.samples() if sample.value]
    return dict(found.labels)["reason"]


def test_a_worker_that_was_killed_is_counted_by_the_reason_of_the_kill() -> None:
    assert counted(EndReason.KILLED, EndReason.INTERRUPT) == "interrupt"
    assert counted(EndReason.MEMORY, EndReason.DEADLINE) == "deadline"


def test_a_worker_that_ended_by_itself_is_counted_by_its_own_reason() -> None:
    assert counted(EndReason.EXITED) == "died"
    assert counted(EndReason.MEMORY) == "memory"


def test_a_worker_that_broke_the_protocol_is_counted_as_unreachable() -> None:
    assert counted(EndReason.KILLED, EndReason.BROKE_PROTOCOL) == "unreachable"


@pytest.mark.parametrize("kind", EndReason)
def test_what_is_counted_is_in_the_documents(kind: EndReason) -> None:
    assert f"`{counted(kind)}`" in DOCS.read_text()
