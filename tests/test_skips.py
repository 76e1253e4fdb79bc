"""A skip is seen: listed always, and in CI a failure unless it is expected."""

import os
import subprocess
import sys
from pathlib import Path

import execnet
import pytest

from tests.house_rules import ROOT
from tests.skips import Skips, known_skips

CONFTEST = """
from tests.skips import Skips, known_skips

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(known_skips({known!r}), {strict}))
"""
TESTS = """
import pytest

@pytest.mark.parametrize("case", [1, 2])
def test_without_rights(case):
    pytest.skip("no right to mount")

@pytest.fixture
def box():
    pytest.skip("no box")

def test_in_a_box(box): ...

@pytest.mark.xfail(reason="a bug of somebody else", strict=True)
def test_red(): assert False

def test_green(): ...
"""


def run(folder: Path, known: str, strict: bool) -> "subprocess.CompletedProcess[str]":
    (folder / "conftest.py").write_text(CONFTEST.format(known=known, strict=strict))
    (folder / "test_some.py").write_text(TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_skip_that_nobody_expects_is_listed_and_fails_in_ci(tmp_path: Path) -> None:
    known = "test_some.py::test_without_rights # it may not mount\ntest_some.py::test_green\n"
    done = run(tmp_path, known, True)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "test_some.py::test_without_rights[1]: no right to mount\n" in done.stdout
    assert "test_some.py::test_without_rights[2]: no right to mount\n" in done.stdout
    assert "test_some.py::test_in_a_box: no box\n" in done.stdout
    assert done.stdout.count("FAILED") == 1
    assert "FAILED: test_some.py::test_in_a_box was skipped and is not in skips\n" in done.stdout
    assert "test_some.py::test_green is in skips and ran: take it off\n" in done.stdout


def test_expected_skips_are_listed_and_pass(tmp_path: Path) -> None:
    done = run(tmp_path, "test_some.py", True)
    assert done.returncode == pytest.ExitCode.OK
    assert "test_some.py::test_in_a_box: no box\n" in done.stdout
    assert "FAILED" not in done.stdout


def test_outside_of_ci_skips_are_listed_and_pass(tmp_path: Path) -> None:
    done = run(tmp_path, "", False)
    assert done.returncode == pytest.ExitCode.OK
    assert "test_some.py::test_in_a_box: no box\n" in done.stdout
    assert "FAILED" not in done.stdout


def test_a_skip_in_a_process_of_xdist_is_one_of_this_run(pytestconfig: pytest.Config) -> None:
    """Reports travel as pytest serialises them and execnet encodes them; no further run of xdist, whose
    processes do not always end in time on a busy machine."""
    sent = pytest.TestReport("a::b", ("a", 1, "b"), {}, "skipped", ("a", 1, "Skipped: no box"), "setup")
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=sent)
    received = pytestconfig.hook.pytest_report_from_serializable(
        config=pytestconfig, data=execnet.loads(execnet.dumps(data))
    )
    skips = Skips(frozenset(), is_strict=True)
    skips.pytest_runtest_logreport(received)
    assert skips.reasons == {"a::b": "no box"}
    assert skips.unknown() == ["a::b"]


def test_a_list_is_lines_without_what_is_said_about_them() -> None:
    assert known_skips("# why\n\na::b[c]  # because\n d.py\n") == {"a::b[c]", "d.py"}
