"""Lines to workers: what cannot be sent is an event, and what is said keeps its place among what is done."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ipc import messages as wire
from ipc.codec import encode
from ipc.sockets import SEND_FRAMES_MAX, Wire
from supervisor.core import events
from supervisor.core.effects import AssignTurn, SteerTurn
from supervisor.core.model import Attempt, Policy, Session, State, Turn, Who, Worker, WorkerState
from supervisor.switchboard import Switchboard

WHO = Who(epoch=1, seat=0, incarnation=7)


class Posts:
    """Where events go: they are kept."""

    def __init__(self) -> None:
        self.state = State(Policy(), epoch=1)
        self.events: list[events.Event] = []
        self.held: list[tuple[int, Callable[[], events.Spoke]]] = []

    def post(self, event: events.Event) -> None:
        self.events.append(event)

    def nudge(self) -> None: ...

    def hold(self, words: Callable[[], events.Spoke]) -> None:
        self.held.append((len(self.events), words))

    def in_order(self) -> list[events.Event]:
        """Everything as the engine would decide it: words in the place where they began."""
        found: list[events.Event] = list(self.events)
        for place, words in reversed(self.held):
            found.insert(place, words())
        return found


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


async def heard(*messages: wire.FromWorker) -> list[events.Event]:
    """What the engine is told when a worker says all this before anything of it is decided."""
    posts = Posts()
    attempt = Attempt(1, WHO, opened_at=0.0)
    turn = Turn("s/1", "s", (), 0.0, attempts=1, attempt=attempt)
    posts.state.sessions["s"] = Session("s", turn=turn)
    posts.state.workers[WHO.seat] = Worker(WHO.seat, WHO.incarnation, WorkerState.BUSY, session="s")
    wires = Wire()
    switchboard = Switchboard(identities=OneWorker(), feed=NoListeners(), brief=brief)
    with TemporaryDirectory() as folder:
        sockets = [wires.router(f"{folder}/{name}", lambda parts: None) for name in ("frames", "pulse")]
        switchboard.open(posts, *sockets)
        for number, message in enumerate(messages, start=1):
            switchboard.frame_arrived([b"worker", number.to_bytes(8), encode(message)])
        assert switchboard.said(WHO) == "".join(
            each.text for each in messages if isinstance(each, wire.Delta)
        )
        wires.close()
    return posts.in_order()


def test_words_keep_their_place_before_and_after_a_tool() -> None:
    tool = wire.ToolStarted("s/1", 1, "c1", "shell", "ls", "{}", "pure")
    spoken = asyncio.run(
        heard(
            wire.Delta("s", "s/1", 1, 0, "I look "),
            wire.Delta("s", "s/1", 1, 7, "around. "),
            tool,
            wire.Delta("s", "s/1", 1, 15, "There it is."),
        )
    )
    said = [event.text if isinstance(event, events.Spoke) else type(event).__name__ for event in spoken]
    assert said == ["I look around. ", "ToolStarted", "There it is."]
