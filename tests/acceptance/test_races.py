"""Five hundred times an interrupt meets the end of a turn: every message ends once, the next turn runs."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hermesctl.client import Client
from ipc.messages import Accepted, Done, Event, Interrupt, Refused, Submit, Subscribe, Subscribed
from tests.acceptance.sight import check_one_owner, check_one_session_a_process
from tests.service import ENDINGS, Service

ROUNDS = 500
SEED = 20_261
# Several in a row on one session, but not so many that its history makes the turns long.
RACES_A_SESSION = 4
# Turns by which the length of an answer is known before the first race.
REHEARSALS = 10
PATIENCE_SECONDS = 20
# After a race that came too early the next ones come later, and the other way round: so they stay close.
AIM_STEP = 1.05


@dataclass
class Race:
    """One round: a message, and what met its end."""

    session: str
    first: str
    second: str
    how: str


class Track:
    """One client that posts, follows every session, and knows which turn answers which message."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._follow = client.post(Subscribe(None))
        client.answer_to(self._follow, Subscribed)
        self.events: list[Event] = []
        self.answers: dict[int, object] = {}
        self.turn_of: dict[str, str] = {}
        self.endings: dict[str, list[str]] = {}
        self.pid_of: dict[str, int] = {}

    def post(self, request: Submit | Interrupt) -> int:
        return self._client.post(request)

    def accepted(self, number: int) -> str:
        self.read(lambda: number in self.answers)
        answer = self.answers[number]
        assert isinstance(answer, Accepted), answer
        return answer.message

    def has_ended(self, message: str) -> bool:
        return bool(self.endings.get(self.turn_of.get(message, "")))

    def outcome(self, message: str) -> str:
        """How the one turn of a message ended; it must have ended exactly once."""
        endings = self.endings[self.turn_of[message]]
        assert len(endings) == 1, f"{message} ended as {endings}"
        return endings[0]

    def read(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not in time; the last events: {self.events[-8:]}"
            self._take(0.2)

    def read_until(self, moment: float) -> None:
        """Reads what comes until a moment of the monotonic clock."""
        while (left := moment - time.monotonic()) > 0:
            self._take(left)

    def _take(self, seconds: float) -> None:
        arrived = self._client.receive(seconds)
        if arrived is None:
            return
        number, answer = arrived
        if number != self._follow:
            self.answers[number] = answer
        elif isinstance(answer, Event):
            self.events.append(answer)
            self._note(answer)

    def _note(self, event: Event) -> None:
        turn = event.fields.get("turn", "")
        # One that comes while the turn waits for a worker joins it.
        if event.type in ("turn.opened", "turn.joined"):
            for message in event.fields["messages"]:
                assert message not in self.turn_of, f"{message} was given two turns"
                self.turn_of[message] = turn
        elif event.type in ENDINGS:
            self.endings.setdefault(turn, []).append(event.type)


def answer_seconds(track: Track) -> float:
    """From accepted to done, by the median of a few undisturbed turns."""
    taken = []
    for number in range(REHEARSALS):
        message = track.accepted(track.post(Submit("rehearsal", "hi", f"r{number}")))
        began = time.monotonic()
        track.read(lambda message=message: track.has_ended(message))  # type: ignore[misc]
        taken.append(time.monotonic() - began)
    return sorted(taken)[len(taken) // 2]


def run_race(track: Track, number: int, chance: random.Random, aim_seconds: float) -> Race:
    session = f"s{number // RACES_A_SESSION}"
    how = chance.choice(["message", "command", "fenced command"])
    first = track.accepted(track.post(Submit(session, f"first {number}", f"a{number}")))
    track.read_until(time.monotonic() + chance.uniform(0.7, 1.3) * aim_seconds)
    asked: int | None = None
    if how != "message":
        expected = track.turn_of.get(first) if how == "fenced command" else None
        asked = track.post(Interrupt(session, "race", expect_turn=expected))
    second = track.accepted(track.post(Submit(session, f"second {number}", f"b{number}", busy="interrupt")))
    track.read(lambda: track.has_ended(first) and track.has_ended(second))
    if asked is not None:
        track.read(lambda: asked in track.answers)
        assert isinstance(track.answers[asked], Done | Refused)
    return Race(session, first, second, how)


@pytest.mark.timeout(300)
def test_a5_a6_five_hundred_interleavings_of_finish_and_interrupt(
    make_service: Callable[..., Service], capsys: pytest.CaptureFixture[str]
) -> None:
    service = make_service(workers="count = 2")
    track = Track(service.client())
    chance = random.Random(SEED)
    aim_seconds = answer_seconds(track)
    races = []
    for number in range(ROUNDS):
        races.append(run_race(track, number, chance, aim_seconds))
        was_early = track.outcome(races[-1].first) == "turn.interrupted"
        aim_seconds = aim_seconds * AIM_STEP if was_early else aim_seconds / AIM_STEP
    counts = Counter((race.how, track.outcome(race.first)) for race in races)
    with capsys.disabled():
        print(f"\nan interrupt about {aim_seconds * 1000:.0f} ms after the message:")
        for (how, outcome), count in sorted(counts.items()):
            print(f"  met by a {how}: {outcome} {count}")
    assert {track.outcome(race.second) for race in races} == {"turn.done"}
    outcomes = Counter(track.outcome(race.first) for race in races)
    assert outcomes.keys() == {"turn.done", "turn.interrupted"}
    assert min(outcomes.values()) >= ROUNDS / 5, "the race is hardly one: both ends must be met"
    texts = {
        event.fields["turn"]: event.fields["text"] for event in track.events if event.type == "turn.done"
    }
    for number, race in enumerate(races):
        # Of one that joined, the answer is to both.
        said = texts[track.turn_of[race.second]].removeprefix("You said: ")
        assert said in (f"second {number}", f"first {number}\n\nsecond {number}")
    check_one_owner(track.events)
    check_one_session_a_process(track.events)
