"""One soak: a service, its visitors, the weather, round after round.

At the end of every round nothing may be owed, doubled or left alive, and what the service holds is counted:
it may not grow.
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.resources import ROOM, grown, resources
from tests.acceptance.sight import alive, descendants, named
from tests.checker import Sight, check_quiet
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.soak.faults import Weather
from tests.soak.visitors import Crowd
from tests.waiting import until
from tests.weights import pulled

CROWDS = 4
ROUND_SECONDS = 60.0
# When the STT service was killed at the end of a round, it rests and loads its weights again.
_SETTLED_SECONDS = 120.0
# Short enough that what hangs comes to its end within the soak.
_TURNS = 'attempts_max = 5\nsilence = "2s"\ndeadline = "30s"'
# In one round the STT service has a second decoder that another did not need.
_ROOM = ROOM | {"descriptors": 10, "descriptors of the zygote": 2, "processes": 2, "memory in MiB": 64}
# The pool keeps more spares while workers are long away, at most one for each busy seat; each costs this.
_SEATS = 6
_OF_A_WORKER = {"descriptors": 3, "descriptors of the zygote": 3, "processes": 1, "workers": 1, "links": 1}


@dataclass
class Report:
    """What happened, for people."""

    seed: int
    counts: Counter[str] = field(default_factory=lambda: Counter(lives=1))

    def __str__(self) -> str:
        told = ", ".join(f"{what} {count}" for what, count in self.counts.items())
        return f"soak with seed {self.seed}: {told}"


def soak(folder: Path, seconds: float, seed: int, say: Callable[[str], None] = lambda line: None) -> Report:
    """`say` gets a line for every round."""
    mark = f"soak-{os.urandom(6).hex()}"
    home = folder / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    rounds = max(1, round(seconds / ROUND_SECONDS))
    with FakeModel() as model:
        settings = settings_for(model, workers=f"count = {_SEATS}", turns=_TURNS, stt='language = "en"')
        with Service(home, settings) as service:
            storm, first = _Storm(service, seed, mark), _settled(service)
            say(f"before: {first}")
            for number in range(rounds):
                storm.blow(number, seconds / rounds)
                held = _settled(service)
                say(f"round {number + 1} of {rounds}: {held}")
                more = held["workers"] - first["workers"]
                assert more < _SEATS, f"with seed {seed}, after round {number + 1}: {more} more workers"
                assert grown(first, held, _room(more, storm.clips)) == {}, f"with seed {seed}"
            assert service.process is not None
            family = descendants(service.process.pid)
            assert service.stop() == 0
    until(lambda: not alive(family))
    assert named(mark) == set(), "processes of tools are left"
    return storm.report


def _room(workers: int, clips: int) -> dict[str, int]:
    """What so many further workers may cost. A clip is kept with its message."""
    room = _ROOM | {"clips": clips}
    return room | {what: room.get(what, 0) + cost * max(0, workers) for what, cost in _OF_A_WORKER.items()}


def _settled(service: Service) -> dict[str, int]:
    """What the service holds once everybody has left and every worker is idle."""

    def is_settled() -> bool:
        rows, found = service.show("workers"), resources(service)
        return (
            all(row["state"] == "idle" for row in rows)
            and all(row["state"] == "ready" for row in service.show("services"))
            and found["subscriptions"] == 0
            and found["unfinished files"] == 0
            and found["links"] == len(rows)
        )

    until(is_settled, _SETTLED_SECONDS)
    return resources(service)


class _Storm:
    """The weather and the visitors of all rounds, and what they have seen together."""

    def __init__(self, service: Service, seed: int, mark: str) -> None:
        self.report = Report(seed)
        self._service = service
        self._mark = mark
        self._sights: list[Sight] = []

    @property
    def clips(self) -> int:
        return self.report.counts["clips sent"]

    def blow(self, number: int, seconds: float) -> None:
        service, seed = self._service, f"{self.report.seed} {number}"
        weather = Weather(service, random.Random(seed))
        over = threading.Event()
        crowds = [
            Crowd(
                f"crowd{number}-{each}",
                service.places,
                f"{seed} {each}",
                lambda: weather.life,
                over,
                self._mark,
            )
            for each in range(CROWDS)
        ]
        try:
            weather.blow(seconds)
        finally:
            over.set()
            for crowd in crowds:
                crowd.join()
        faults = [crowd.fault for crowd in crowds if crowd.fault]
        assert not faults, f"with seed {self.report.seed}: {faults}"
        self._sights += [sight for crowd in crowds for sight in crowd.sights]
        self._check(weather, sum(crowd.visits for crowd in crowds))

    def _check(self, weather: Weather, visits: int) -> None:
        service, counts = self._service, self.report.counts
        until(
            lambda: not service.show("turns", state="running") and not service.show("turns", state="queued")
        )
        history = check_quiet(service.places.journal, self._sights)
        accepted = sum(len(sight.accepted) for sight in self._sights)
        assert accepted == len(history.messages), "a message is there that nobody was told of"
        counts.update({"lives": weather.life - 1, "connections": visits, **weather.counts})
        # The journal has those of all rounds.
        for what, count in history.counts().items():
            counts[what] = count
        counts["clips sent"] = sum(bool(row["clip"]) for row in history.messages)
        counts["clips heard"] = sum(event["type"] == "transcript.ready" for event in history.events)
