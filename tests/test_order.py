"""Long tests begin first in every test process, and no test is lost or doubled by that."""

from pathlib import Path

import pytest

from tests.house_rules import ROOT
from tests.order import spread


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 6, 100])
def test_every_test_is_run_once_and_the_long_ones_are_spread(processes: int, count: int) -> None:
    tests = list(range(count))
    is_long = [number % 9 == 5 for number in tests]
    arranged = spread(tests, is_long, processes)
    assert sorted(arranged) == tests
    others = [number for number in arranged if not is_long[number]]
    assert others == sorted(others)
    if count < 100:
        return
    # As pytest-xdist hands them out.
    left, begun = arranged, set()
    for process in range(processes):
        size = len(left) // (processes - process)
        run, left = left[:size], left[size:]
        longer = [number for number in run if is_long[number]]
        assert run[: len(longer)] == longer
        begun.add(len(longer))
    assert max(begun) - min(begun) <= 1


def test_the_list_names_tests_that_exist() -> None:
    for line in (Path(__file__).with_name("longest.txt")).read_text().split():
        file, _, name = line.partition("::")
        assert name.rpartition("::")[2] in ("runTest", *(ROOT / file).read_text().replace("(", " ").split())
