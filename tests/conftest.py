"""Set-up of every run of tests, however it was started."""

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from tests import order, postgres_cluster, skips
from tests.crash.deaths import Deaths
from tests.fake_model import FakeModel


def pytest_configure(config: pytest.Config) -> None:
    skips.watch(config)
    config.pluginmanager.register(Deaths())
    # An example takes as long as the neighbours let it.
    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")
    # Test processes of this one inherit it.
    if postgres_cluster.FOLDER not in os.environ:
        folder = os.environ[postgres_cluster.FOLDER] = postgres_cluster.folder_of_run()
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    # A shell that runs tests in the background has them ignore Ctrl-C; what they start inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and items stay until the end of the run; the garbage collector need not look through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order.arrange(config, items)


@pytest.fixture(scope="session")
def model_server() -> Iterator[FakeModel]:
    """One for all tests of a process: its start takes half a second of processor time."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture
def model(model_server: FakeModel) -> FakeModel:
    """The fake model server in its normal mode, with nothing asked of it yet."""
    model_server.reset()
    return model_server


@pytest.fixture(scope="session")
def _second_model_server() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture
def second_model(_second_model_server: FakeModel) -> FakeModel:
    """Another one, for tests of agents that have two models."""
    _second_model_server.reset()
    return _second_model_server
