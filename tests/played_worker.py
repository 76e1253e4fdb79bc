"""A router whose one worker is played by the test, with libzmq as a real one."""

from collections.abc import Callable
from pathlib import Path

from ipc import messages as wire
from ipc.channel import connected_pair
from ipc.codec import encode
from ipc.sockets import LoopSocket, Wire
from supervisor.core import events
from supervisor.core.effects import AssignTurn
from supervisor.core.policy import Policy
from supervisor.core.state import Attempt, Session, State, Turn, Who, Worker, WorkerState
from supervisor.workers.agent_faults import AgentFaults
from supervisor.workers.router import Router
from tests.no_containment import uncontained

WHO = Who(epoch=1, seat=0, incarnation=7)


class Posts:
    """Where events go: they are kept."""

    def __init__(self) -> None:
        self.state = State(Policy(), epoch=1)
        self.events: list[events.Event] = []
        self.held: list[tuple[int, Callable[[], events.TextStreamed]]] = []
        self.nudges = 0

    def post(self, event: events.Event) -> None:
        self.events.append(event)

    def nudge(self) -> None:
        self.nudges += 1

    def hold(self, words: Callable[[], events.TextStreamed]) -> None:
        self.held.append((len(self.events), words))

    def in_order(self) -> list[events.Event]:
        """Everything as the engine would decide it: words in the place where they began."""
        found: list[events.Event] = list(self.events)
        for place, words in reversed(self.held):
            found.insert(place, words())
        return found

    def run_turn(self, session: str = "s") -> Turn:
        """The worker has the first attempt at the first turn of a session."""
        attempt = Attempt(1, WHO, opened_at=0.0)
        turn = Turn(f"{session}/1", session, (), 0.0, attempts=1, attempt=attempt)
        self.state.sessions[session] = Session(session, turn=turn)
        self.state.workers[WHO.seat] = Worker(WHO.seat, WHO.incarnation, WorkerState.BUSY, session=session)
        return turn


class OneWorker:
    """The process room with one worker in it."""

    is_alive = True

    def is_known(self, incarnation: int) -> bool:
        return self.is_alive and incarnation == WHO.incarnation


class Listeners:
    """Subscribers: what they are shown is kept."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, bytes]] = []

    def delta(self, session: str, frame: bytes) -> None:
        self.shown.append((session, frame))


def build_assign(effect: AssignTurn) -> wire.Assign:
    agent = wire.AgentSpec("default", "builtin", {})
    return wire.Assign(
        effect.session, effect.turn, effect.attempt, (), agent, wire.ModelEndpoint("http://x", "m", "")
    )


class Image:
    """One image of the supervisor, as far as its router goes."""

    def __init__(self) -> None:
        self.posts, self.listeners, self.processes = Posts(), Listeners(), OneWorker()
        self.faults = AgentFaults(lambda agent: "as they are")
        self.router = Router(
            subscriptions=self.listeners,
            build_assign=build_assign,
            build_setup=lambda agent: wire.Setup(wire.AgentSpec(agent, "builtin")),
            contain=uncontained(),
            faults=self.faults,
        )
        self.router.open(self.posts, self.processes)

    def reasons(self) -> list[str]:
        unreachable = [event for event in self.posts.events if isinstance(event, events.WorkerUnreachable)]
        assert all(event.who == WHO for event in unreachable)
        return [str(event.reason) for event in unreachable]

    def commit(self) -> None:
        """What was received is durable."""
        self.router.all_taken()
        self.router.acknowledge()


class Stage(Image):
    """With a worker that is connected once it is played."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        (frames, self.frames), (pulse, self.pulse) = (connected_pair(str(folder)) for _ in range(2))
        self.router.connected(WHO.seat, WHO.incarnation, frames, pulse)
        self.wire = Wire()
        self.received: list[list[bytes]] = []
        self.pulses: list[list[bytes]] = []

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *error: object) -> None:
        self.wire.close()
        self.frames.close()
        self.pulse.close()
        self.router.close()

    def play(self) -> LoopSocket:
        return self.wire.line(self.frames.detach(), self.received.append)

    def play_pulse(self) -> LoopSocket:
        return self.wire.line(self.pulse.detach(), self.pulses.append)


def numbered(number: int, message: wire.FromWorker) -> list[bytes]:
    """A frame as a worker sends it."""
    return [number.to_bytes(8), encode(message)]
