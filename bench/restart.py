"""A restart, plain and in place: how long nobody is answered, and how long a running turn is not heard.

The limit is what no restart can avoid: an interpreter that imports the supervisor and ends.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import Done, HandOver, Show, Table
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for

TITLE = "A restart: time without service"
ROUNDS = 10
GOAL = 2.0
_LOOK_SECONDS = 0.001
# Words come every hundredth of a second, so a longer pause is the restart's.
_WORDS = "[[slow interval=0.01 count=1000000]] go on"


def import_ms() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import supervisor.app"], check=True)
    return (time.perf_counter() - began) * 1000


def first_answer(service: Service) -> None:
    while True:
        try:
            client = Client(service.places)
            try:
                client.ask(Show("status"), Table)
                return
            finally:
                client.close()
        except NotRunning:
            time.sleep(_LOOK_SECONDS)


def away_ms(service: Service, leave: Callable[[Service], None]) -> float:
    """From the moment the service has let go to its first answer."""
    client = service.client()
    leave(service)
    while not client.is_lost():
        time.sleep(_LOOK_SECONDS)
    began = time.perf_counter()
    first_answer(service)
    return (time.perf_counter() - began) * 1000


def stop_and_start(service: Service) -> None:
    service.stop()
    service.launch()


def replace_in_place(service: Service) -> None:
    service.client().ask(HandOver(), Done, 60)


def heard_again_ms(service: Service, leave: Callable[[Service], None]) -> float:
    """From the last word before a restart to the first new one after it; the turn is then stopped."""
    service.say("demo", _WORDS)
    before = service.listen("demo")
    before.until(lambda: "word10 " in before.words)
    leave(service)
    client = before.client
    while not client.is_lost():
        before.until(lambda: True)
    began = time.perf_counter()
    first_answer(service)
    after = service.listen("demo")
    wait_for_more(after, len(before.words))
    spent = (time.perf_counter() - began) * 1000
    service.interrupt("demo")
    after.until(lambda: after.of_type("turn.interrupted"))
    return spent


def wait_for_more(listener: Listener, length: int) -> None:
    listener.until(lambda: len(listener.words) > length)


def measure(rounds: int) -> list[Outcome]:
    names = ("plain", "in place", "plain, a running turn heard again", "in place, the same")
    series: dict[str, list[float]] = {name: [] for name in names}
    limit: list[float] = []
    with (
        FakeModel() as model,
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "home", settings_for(model, workers="count = 1")) as service,
    ):
        for _ in range(rounds):
            limit.append(import_ms())
            series[names[0]].append(away_ms(service, stop_and_start))
            series[names[1]].append(away_ms(service, replace_in_place))
            series[names[2]].append(heard_again_ms(service, stop_and_start))
            series[names[3]].append(heard_again_ms(service, replace_in_place))
    goals = (GOAL, GOAL, None, None)
    return [
        Outcome(name, series[name], limit, "ms", "at most", goal)
        for name, goal in zip(names, goals, strict=True)
    ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
