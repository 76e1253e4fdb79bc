"""One soak: a service, its visitors, the weather; at the end nothing may be owed, doubled or left alive."""

import os
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.sight import alive, descendants, named
from tests.checker import check_quiet
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.soak.faults import Weather
from tests.soak.visitors import Crowd
from tests.waiting import until
from tests.weights import pulled

CROWDS = 4
# Short enough that what hangs comes to its end within the soak.
_TURNS = 'attempts_max = 5\nsilence = "2s"\ndeadline = "30s"'


@dataclass
class Report:
    """What happened, for people."""

    seed: int
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{what} {count}" for what, count in self.counts.items())
        return f"soak with seed {self.seed}: {told}"


def soak(folder: Path, seconds: float, seed: int) -> Report:
    mark = f"soak-{os.urandom(6).hex()}"
    home = folder / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    with FakeModel() as model:
        settings = settings_for(model, workers="count = 6", turns=_TURNS, stt='language = "en"')
        with Service(home, settings) as service:
            report = _storm(service, seconds, seed, mark)
            assert service.process is not None
            family = descendants(service.process.pid)
            assert service.stop() == 0
    until(lambda: not alive(family))
    assert named(mark) == set(), "processes of tools are left"
    return report


def _storm(service: Service, seconds: float, seed: int, mark: str) -> Report:
    weather = Weather(service, random.Random(seed))
    over = threading.Event()
    crowds = [
        Crowd(f"crowd{each}", service.places, f"{seed} {each}", lambda: weather.life, over, mark)
        for each in range(CROWDS)
    ]
    try:
        weather.blow(seconds)
    finally:
        over.set()
        for crowd in crowds:
            crowd.join()
    faults = [crowd.fault for crowd in crowds if crowd.fault]
    assert not faults, f"with seed {seed}: {faults}"
    until(lambda: not service.show("turns", state="running") and not service.show("turns", state="queued"))
    history = check_quiet(service.places.journal, [sight for crowd in crowds for sight in crowd.sights])
    accepted = sum(len(sight.accepted) for crowd in crowds for sight in crowd.sights)
    assert accepted == len(history.messages), "a message is there that nobody was told of"
    heard = sum(event["type"] == "transcript.ready" for event in history.events)
    visits = sum(crowd.visits for crowd in crowds)
    counts = {
        "lives": weather.life,
        "connections": visits,
        **weather.counts,
        **history.counts(),
        "clips heard": heard,
    }
    return Report(seed, counts)
