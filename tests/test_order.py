"""Long tests begin first in every test process, and no test is lost or doubled by that."""

from pathlib import Path

import pytest

from tests.house_rules import ROOT
from tests.order import part_of, spread


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 6, 100])
def test_every_test_is_run_once_and_the_long_ones_are_spread(processes: int, count: int) -> None:
    tests = list(range(count))
    parts = [f"test {number}" if number % 9 == 5 else "" for number in tests]
    arranged = spread(tests, parts, processes)
    assert sorted(arranged) == tests
    others = [number for number in arranged if not parts[number]]
    assert others == sorted(others)
    if count == 100:
        begun = [len(longer) for longer in _begun(arranged, parts, processes)]
        assert max(begun) - min(begun) <= 1


def test_what_shares_a_fixture_stays_together() -> None:
    tests = list(range(100))
    parts = ["a module" if 20 <= number < 30 else "another" if number >= 95 else "" for number in tests]
    arranged = spread(tests, parts, 4)
    assert sorted(arranged) == tests
    assert _begun(arranged, parts, 4) == [tests[20:30], tests[95:], [], []]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("tests/a/test_x.py::test_long[1]", "tests/a/test_x.py::test_long[1]"),
        ("tests/a/test_x.py::test_short", ""),
        ("tests/a/test_whole.py::test_any", "tests/a/test_whole.py"),
        ("tests/b/test_z.py::test_any[a/b]", "tests/b/"),
        ("tests/b/c/test_z.py::test_any", ""),
    ],
)
def test_a_line_is_a_test_a_module_or_a_folder(name: str, part: str) -> None:
    assert (
        part_of(name, frozenset({"tests/a/test_x.py::test_long", "tests/a/test_whole.py", "tests/b/"}))
        == part
    )


def _begun(arranged: list[int], parts: list[str], processes: int) -> list[list[int]]:
    """The long tests with which each process begins, as pytest-xdist hands them out."""
    left, begun = arranged, []
    for process in range(processes):
        size = len(left) // (processes - process)
        run, left = left[:size], left[size:]
        longer = [number for number in run if parts[number]]
        assert run[: len(longer)] == longer
        begun.append(longer)
    return begun


def test_the_list_names_tests_that_exist() -> None:
    for line in (Path(__file__).with_name("longest.txt")).read_text().split():
        file, _, name = line.partition("::")
        assert (ROOT / file).exists(), line
        assert (ROOT / file).is_dir() == file.endswith("/"), line
        words = (ROOT / file).read_text().replace("(", " ").split() if name else []
        assert name.rpartition("::")[2] in ("", "runTest", *words)
