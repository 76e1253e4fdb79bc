"""Skips are listed at the end of a run with their reasons; in CI one that is not expected fails the run.

A skipped test guards nothing. With the variable CI set, the tests that may be skipped are those in
`.ci/skips`, one a line: a test, all cases of a test, or a whole file. Text after a `#` is a comment. A listed
test that ran is named as well, so that the list can shrink.
"""

import os
from pathlib import Path

import pytest

KNOWN = Path(__file__).resolve().parent.parent / ".ci" / "skips"


class Skips:
    """Collects the skips of one run; under pytest-xdist it lives in the process that started the others."""

    def __init__(self, known: frozenset[str], is_strict: bool) -> None:
        self._known = known
        self._is_strict = is_strict
        self._ran: set[str] = set()
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.reasons[report.nodeid] = _reason(report)
        elif report.when == "call":
            self._ran.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.reasons[report.nodeid] = _reason(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_strict and self.unknown() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.reasons:
            terminalreporter.section("skipped")
        for test, reason in sorted(self.reasons.items()):
            terminalreporter.write_line(f"{test}: {reason}")
        if not self._is_strict:
            return
        for test in self.unknown():
            terminalreporter.write_line(
                f"FAILED: {test} was skipped and is not in {KNOWN.name}", red=True, bold=True
            )
        for line in self.needless():
            terminalreporter.write_line(f"{line} is in {KNOWN.name} and ran: take it off", yellow=True)

    def unknown(self) -> list[str]:
        """The skipped tests that no line of the list covers."""
        return sorted(test for test in self.reasons if not any(_covers(line, test) for line in self._known))

    def needless(self) -> list[str]:
        """The lines of the list whose tests ran."""
        return sorted(
            line
            for line in self._known
            if any(_covers(line, test) for test in self._ran)
            and not any(_covers(line, test) for test in self.reasons)
        )


def known_skips(text: str) -> frozenset[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


def watch(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(known_skips(KNOWN.read_text()), bool(os.environ.get("CI"))))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Pytest keeps a skip as its file, line and reason."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.longreprtext


def _covers(line: str, test: str) -> bool:
    return test == line or test.startswith((f"{line}[", f"{line}::"))
