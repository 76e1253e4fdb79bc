"""The order in which a committed batch is performed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ipc.messages import Event, Submit, Subscribe, Subscribed
from supervisor.core.effects import (
    Accepted,
    BindWorker,
    Decision,
    Effect,
    EndGrace,
    KillWorker,
    StartWorker,
    WarmRuntime,
)
from supervisor.core.events import Ticked
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import Record
from supervisor.core.state import Who
from supervisor.decider import Decided
from supervisor.performer import perform
from supervisor.workers.assignment import Assignment
from tests.supervisor.puppet_service import PuppetService
from tests.waiting import until

_WHO = Who(1, 0, 1)


class Actions:
    """Notes what is done, in its order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def act(self, effect: Effect) -> None:
        self.done.append(effect)

    def publish(self, records: Sequence[Record]) -> None:
        self.done.append("publish")

    def flush(self) -> None:
        self.done.append("flush")

    def acknowledge(self) -> None:
        self.done.append("acknowledge")

    def decided(self, batch: Decided) -> None:
        self.done.append("log")


def test_clients_are_told_before_workers_are_bound_and_started() -> None:
    """Each of those takes milliseconds in which a client would know nothing of a turn that has ended."""
    ended = KillWorker(0, 1, Reason(EndReason.INTERRUPT), "s/1")
    idle = KillWorker(1, 2, Reason(EndReason.TURN_OVER))
    grace, bind, warm = EndGrace(_WHO), BindWorker(_WHO, "s"), WarmRuntime("other")
    start = StartWorker(2, 3, "default")
    actions = Actions()
    answer = Accepted("m_1", 1, again=False)
    first = Decision((), (start, bind, ended), None)
    second = Decision((), (idle, warm, grace), answer)
    perform([(Ticked(), first, None), (Ticked(), second, actions.done.append)], actions)
    told = [answer, "publish", "flush"]
    assert actions.done == [ended, grace, *told, bind, warm, start, idle, "acknowledge", "log"]


def test_a_client_reads_that_its_turn_has_begun_while_a_worker_is_bound(tmp_path: Path) -> None:
    """The supervisor stands still in the binding until the client has read it."""
    is_read = tmp_path / "read"
    bind = Assignment.bind

    def held(self: Assignment, effect: BindWorker) -> None:
        until(is_read.exists)
        bind(self, effect)

    def hold_bindings() -> None:
        Assignment.bind = held  # type: ignore[method-assign]

    with PuppetService(tmp_path / "home", prepare=hold_bindings) as service:
        follow = service.client.post(Subscribe("s", 0))
        assert isinstance(service.next_to(follow), Subscribed)
        service.client.post(Submit("s", "hello", "k"))
        seen = []
        while "attempt.opened" not in seen:
            told = service.next_to(follow)
            assert isinstance(told, Event)
            seen.append(told.type)
        is_read.touch()
    assert seen[:2] == ["message.accepted", "turn.opened"]
