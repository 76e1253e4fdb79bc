"""Supervisors on one PostgreSQL server, each with a home of its own."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests import postgres_cluster
from tests.cutting_proxy import CuttingProxy
from tests.fake_model import FakeModel
from tests.hosts.several import Hosts
from tests.postgres_cluster import Cluster
from tests.service import Service, settings_for

Make = Callable[..., Service]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its hosts and the server know: it may not fail again for a thousand runs."""
    report = yield
    if report.when == "call" and report.failed and isinstance(item, pytest.Function):
        shared = item.funcargs.get("hosts")
        if isinstance(shared, Hosts):
            report.sections += shared.evidence()
    return report


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that tests may stop and start."""
    with postgres_cluster.running(fsync="on") as cluster:
        yield cluster


@pytest.fixture
def schema(cluster: Cluster) -> str:
    return cluster.new_schema()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[CuttingProxy]:
    """Between one of the hosts and the server."""
    with CuttingProxy(cluster.port) as proxy:
        yield proxy


@pytest.fixture
def hosts(cluster: Cluster, schema: str, tmp_path: Path, model: FakeModel) -> Iterator[Hosts]:
    """Hosts with a short lease."""
    hosts = Hosts(tmp_path, model, cluster.url(schema))
    yield hosts
    hosts.close()


@pytest.fixture
def make(tmp_path: Path, model: FakeModel, cluster: Cluster, schema: str) -> Iterator[Make]:
    """Start a host by its name; `port` is that of a proxy in front of the server."""
    made: list[Service] = []

    def make(name: str, port: int = 0, **tables: str) -> Service:
        url = cluster.url(schema, port or cluster.port)
        wanted = {
            "workers": "count = 2",
            "hosts": f'name = "{name}"\nlease = "4s"\nfiles = "shared"',
        } | tables
        service = Service(tmp_path / name, settings_for(model, journal=f'url = "{url}"', **wanted))
        made.append(service)
        service.start()
        return service

    yield make
    for service in made:
        service.__exit__(None, None, None)
