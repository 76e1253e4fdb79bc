"""A frame that cannot be sent to a worker is an event with its reason, never silence."""

import asyncio
from pathlib import Path

import pytest

from ipc import messages as wire
from ipc.sockets import SEND_FRAMES_MAX, Wire
from supervisor.core import events
from supervisor.core.effects import AssignTurn, SteerTurn
from supervisor.core.model import Policy, State, Who
from supervisor.switchboard import Switchboard

WHO = Who(epoch=1, seat=0, incarnation=7)


class Posts:
    """Where events go: they are kept."""

    def __init__(self) -> None:
        self.state = State(Policy(), epoch=1)
        self.events: list[events.Event] = []

    def post(self, event: events.Event) -> None:
        self.events.append(event)

    def nudge(self) -> None: ...


class OneWorker:
    """The process room with one worker in it."""

    def find(self, identity: bytes) -> tuple[int, int] | None:
        return (WHO.seat, WHO.incarnation) if identity == b"worker" else None

    def identity(self, incarnation: int) -> bytes | None:
        return b"worker" if incarnation == WHO.incarnation else None


class NoListeners:
    def delta(self, session: str, frame: bytes) -> None: ...


def brief(effect: AssignTurn) -> wire.Assign:
    agent = wire.AgentSpec("default", "builtin", {})
    return wire.Assign(
        effect.session, effect.turn, effect.attempt, (), agent, wire.ModelEndpoint("http://x", "m", "")
    )


async def reasons(folder: Path, connected: bool, frames: int) -> list[str]:
    """What is reported when so many frames go to a worker that is absent or never reads."""
    ours, theirs = Wire(), Wire()
    posts = Posts()
    arrived = asyncio.Event()
    socket = ours.router(str(folder / "frames"), lambda parts: arrived.set())
    switchboard = Switchboard(identities=OneWorker(), feed=NoListeners(), brief=brief)
    switchboard.open(posts, socket, ours.router(str(folder / "pulse"), lambda parts: None))
    try:
        if connected:
            theirs.blocking(str(folder / "frames"), "worker").send([b"", b""])
            await asyncio.wait_for(arrived.wait(), 20)
        for number in range(frames):
            switchboard.steer(SteerTurn(WHO, "s/1", 1, f"m_{number}", "x" * 100))
    finally:
        theirs.close()
        ours.close()
    assert all(isinstance(event, events.WorkerUnreachable) and event.who == WHO for event in posts.events)
    return [event.reason for event in posts.events if isinstance(event, events.WorkerUnreachable)]


@pytest.mark.parametrize(
    ("connected", "frames", "reason"),
    [(False, 1, "it is not connected"), (True, 4 * SEND_FRAMES_MAX, "it does not read its frames")],
)
def test_b6_a_worker_that_cannot_be_reached_is_an_event(
    tmp_path: Path, connected: bool, frames: int, reason: str
) -> None:
    assert set(asyncio.run(reasons(tmp_path, connected, frames))) == {reason}


def test_b6_a_worker_that_reads_is_reached(tmp_path: Path) -> None:
    assert asyncio.run(reasons(tmp_path, True, 10)) == []
