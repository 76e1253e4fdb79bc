"""The service of a kind and a session of it."""

from collections.abc import Iterator

import pytest

from tests.fake_model import FakeModel
from tests.kinds.stage import Served, Stage


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, model_server: FakeModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Of the kind that is its parameter."""
    found = Served(request.param, tmp_path_factory.mktemp("kind"), model_server)
    with found.service:
        yield found


@pytest.fixture
def stage(request: pytest.FixtureRequest, served: Served) -> Iterator[Stage]:
    found = Stage(served, request.function.scenario)
    yield found
    found.interrupt()
