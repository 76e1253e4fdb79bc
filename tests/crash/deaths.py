"""The number of deaths that happened in the crash tests of a run, printed at its end."""

import pytest

# The name under which a test reports how many there were.
DEATHS = "deaths"


class Deaths:
    """A plugin of the process that reports; with xdist the tests run in others."""

    def __init__(self) -> None:
        self._tests = 0
        self._deaths = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            found = [value for name, value in report.user_properties if name == DEATHS]
            self._tests += bool(found)
            self._deaths += sum(int(str(value)) for value in found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._tests:
            line = f"crash: {self._deaths} deaths at their points, in {self._tests} tests"
            terminalreporter.write_line(line)
