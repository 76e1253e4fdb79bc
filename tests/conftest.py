"""Set-up of every run of tests, however it was started."""

import gc
import signal
from collections.abc import Generator

import hypothesis
import pytest

from tests import order, skips
from tests.crash.deaths import Deaths


def pytest_configure(config: pytest.Config) -> None:
    skips.watch(config)
    config.pluginmanager.register(Deaths())
    # An example takes as long as the neighbours let it.
    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")
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
