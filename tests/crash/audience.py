"""Clients that outlive the service: each plays its part in one session, and goes on where a crash cut it off.

A play is a generator. It yields a request and gets its answer, however many lives that takes (the same key is
the same message), or it yields a condition on the events of its session and goes on when it holds.
"""

import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import (
    Accepted,
    Answer,
    Begin,
    Done,
    Event,
    Interrupt,
    Queue,
    Refused,
    Respond,
    Retry,
    Seen,
    Submit,
    Subscribe,
)
from ipc.places import Places
from tests.checker import Sight

Condition = Callable[[list[Event]], bool]
Ask = Submit | Begin | Interrupt | Queue | Respond | Retry | Seen
Step = Ask | Condition
Play = Generator[Step, Answer | None, None]
_LOOK_SECONDS = 0.01


@dataclass
class Role:
    """One play, the session it is about, and what its client has seen."""

    sight: Sight
    play: Play
    step: Step | None = None
    asked: int | None = None
    followed: int | None = None
    is_over: bool = False
    refused: list[Refused] = field(default_factory=list)

    def go_on(self, answer: Answer | None = None) -> None:
        """Takes steps as long as nothing has to be waited for."""
        try:
            self.step = next(self.play) if self.step is None else self.play.send(answer)
            while callable(self.step) and self.step(self.sight.events):
                self.step = self.play.send(None)
        except StopIteration:
            self.is_over = True

    def saw(self, event: Event) -> None:
        self.sight.saw(event)
        if callable(self.step) and self.step(self.sight.events):
            self.go_on()

    def answered(self, answer: Answer) -> None:
        step = self.step
        is_elsewhere = isinstance(step, Submit) and step.session != self.sight.session
        if isinstance(answer, Accepted) and isinstance(step, Submit | Retry) and not is_elsewhere:
            self.sight.answered(step.key, answer)
        elif isinstance(answer, Refused):
            self.refused.append(answer)
        self.asked = None
        self.go_on(answer)


class Audience:
    """All roles, on one connection; `visit` it once per life of the service."""

    def __init__(self, places: Places, plays: dict[str, Play]) -> None:
        self._places = places
        self.roles: list[Role] = []
        self.add(plays)

    def add(self, plays: dict[str, Play]) -> None:
        """Further plays, from the next life on."""
        added = [Role(Sight(session), play) for session, play in plays.items()]
        for role in added:
            role.go_on()
        self.roles += added

    @property
    def sights(self) -> list[Sight]:
        return [role.sight for role in self.roles]

    @property
    def events(self) -> int:
        return sum(len(sight.events) for sight in self.sights)

    @property
    def is_content(self) -> bool:
        return all(role.is_over for role in self.roles)

    def visit(
        self, has_gone: Callable[[], bool], enough: Callable[[], bool], deadline_seconds: float
    ) -> None:
        """Plays until the service has gone or it is enough; AssertionError when neither comes in time."""
        deadline = time.monotonic() + deadline_seconds
        client = self._enter(has_gone, deadline)
        if client is None:
            return
        try:
            self._begin(client)
            while not (has_gone() or enough()):
                assert time.monotonic() < deadline, f"stuck: {self.stuck()}"
                self._hear(client)
            while self._hear(client):
                """What was told before the end counts as seen."""
        finally:
            client.close()

    def stuck(self) -> list[tuple[str, Step | None, list[str]]]:
        roles = [role for role in self.roles if not role.is_over]
        return [
            (role.sight.session, role.step, [event.type for event in role.sight.events]) for role in roles
        ]

    def _enter(self, has_gone: Callable[[], bool], deadline: float) -> Client | None:
        """A line to the service, or None when it has gone before its doors were open."""
        while not has_gone():
            assert time.monotonic() < deadline, "the service never opened its doors"
            try:
                return Client(self._places)
            except NotRunning:
                time.sleep(0.002)
        return None

    def _begin(self, client: Client) -> None:
        for role in self.roles:
            role.followed = client.post(Subscribe(role.sight.session, role.sight.seq))
            role.asked = None
        self._ask(client, self.roles)

    def _ask(self, client: Client, roles: Iterable[Role]) -> None:
        for role in roles:
            waits = role.is_over or role.asked is not None
            if not waits and isinstance(role.step, Ask):
                role.asked = client.post(role.step)

    def _hear(self, client: Client) -> bool:
        arrived = client.receive(_LOOK_SECONDS)
        if arrived is None:
            return False
        number, answer = arrived
        for role in self.roles:
            if number == role.followed and isinstance(answer, Event):
                role.saw(answer)
            elif number == role.asked and isinstance(answer, Accepted | Done | Refused):
                role.answered(answer)
        self._ask(client, self.roles)
        return True
