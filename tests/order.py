"""Tests that take long begin first, spread over the test processes, so that none is left over at the end.

pytest-xdist's work stealing gives every process an equal run of neighbouring tests; later, an idle process
takes half of what the longest queue still holds, from its end. So each run begins with its share of the long
tests, and the others keep their order: neighbours share fixtures of a module.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

_LONGEST = Path(__file__).with_name("longest.txt")
_Item = TypeVar("_Item")


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`longest.txt` names the tests that take more than five seconds, all cases of a test in one line."""
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes > 1:
        longest = frozenset(_LONGEST.read_text().split())
        is_long = [item.nodeid.partition("[")[0] in longest for item in items]
        items[:] = spread(items, is_long, processes)


def spread(items: Sequence[_Item], is_long: Sequence[bool], processes: int) -> list[_Item]:
    first = [item for item, long in zip(items, is_long, strict=True) if long]
    others = [item for item, long in zip(items, is_long, strict=True) if not long]
    shares = [first[process::processes] for process in range(processes)]
    arranged: list[_Item] = []
    for process, share in enumerate(shares):
        size = (len(items) - len(arranged)) // (processes - process)
        short = max(0, size - len(share))
        arranged += [*share, *others[:short]]
        others = others[short:]
    return arranged + others
