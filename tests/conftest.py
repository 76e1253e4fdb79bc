"""Set-up of every run of tests, however it was started."""

import signal

import pytest

from tests import skips


def pytest_configure(config: pytest.Config) -> None:
    skips.watch(config)
    # A shell that runs tests in the background has them ignore Ctrl-C; what they start inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
