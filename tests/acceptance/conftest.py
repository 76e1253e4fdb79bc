"""One fake model server for all acceptance tests; every test has a service and a home of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.service import Service, settings_for


@pytest.fixture
def make_service(tmp_path: Path, model: FakeModel) -> Iterator[Callable[..., Service]]:
    """Starts a service; keyword arguments add lines to tables of its hermes.toml."""
    made: list[Service] = []

    def make(module: str = "supervisor", **tables: str) -> Service:
        service = Service(tmp_path / f"home{len(made)}", settings_for(model, **tables), module)
        made.append(service)
        service.start()
        return service

    yield make
    for service in made:
        service.__exit__(None, None, None)


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the host that agents of `open_service` see and may write."""
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o777)
    return folder


@pytest.fixture
def open_service(make_service: Callable[..., Service], shared: Path) -> Service:
    """Like `service`, with a folder that test and agent have in common."""
    return make_service(workers="count = 2", sandbox=f'write = ["{shared}"]')


@pytest.fixture
def service(make_service: Callable[..., Service]) -> Service:
    """Two busy seats and a spare: small enough to start in a moment."""
    return make_service(workers="count = 2")
