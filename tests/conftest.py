"""What every test may rely on, however the tests themselves were started."""

import signal


def pytest_configure() -> None:
    """A shell that runs tests in the background has them ignore Ctrl-C; what they start inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
