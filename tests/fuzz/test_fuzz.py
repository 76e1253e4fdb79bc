"""Nothing that can be sent ends the service, meets a defect of ours, or makes it grow.

The same frames every time, so that a failure can be looked into; `python -m tests.fuzz` sends as many as
are wanted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bench.pretend import pretend_service
from ipc.messages import Answer
from tests.fake_model import FakeModel
from tests.fuzz.at_control import Storm, requests
from tests.fuzz.at_workers import PlayedWorkers, frames
from tests.service import Service, settings_for

# What a loop may allocate for good while it learns what it needs; frames kept anywhere would be far more.
GROWTH_BYTES_MAX = 24 * 1024 * 1024
ALWAYS_THE_SAME = settings(
    max_examples=600,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Storm]:
    home = tmp_path_factory.mktemp("fuzz") / "home"
    with (
        Service(home, settings_for(model_server, workers="count = 1")) as service,
        Storm(service) as storm,
    ):
        service.say("demo", "hello")
        service.listen("demo").ending("demo/1")
        yield storm


def test_h13_any_request_that_the_types_allow_is_answered(storm: Storm) -> None:
    @ALWAYS_THE_SAME
    @given(requests())
    def send(request: Any) -> None:
        assert isinstance(storm.ask(request), Answer)

    send()
    storm.check_alive()


def test_h13_any_request_with_bytes_changed_is_answered_and_none_is_kept(storm: Storm) -> None:
    storm.send_changed(seed=1, count=2000)
    before = storm.memory_bytes()
    storm.send_changed(seed=2, count=6000)
    storm.check_alive()
    assert storm.memory_bytes() - before < GROWTH_BYTES_MAX


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[PlayedWorkers]:
    with pretend_service(tmp_path / "home", 1) as (places, pid), PlayedWorkers(places, pid) as played:
        yield played


def test_h13_any_frame_of_a_worker_costs_at_most_that_worker(workers: PlayedWorkers) -> None:
    @ALWAYS_THE_SAME
    @given(frames())
    def say(message: Any) -> None:
        workers.say(message)

    say()
    workers.check_alive()
    before = workers.memory_bytes()
    workers.send_changed(seed=3, count=600)
    workers.check_alive()
    assert workers.killed > 100, "most changed frames cannot be read"
    assert workers.memory_bytes() - before < GROWTH_BYTES_MAX
