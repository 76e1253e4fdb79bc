"""Tests that take long begin first, spread over the test processes, so that none is left over at the end.

pytest-xdist's work stealing gives every process an equal run of neighbouring tests; later, an idle process
takes half of what the longest queue still holds, from its end. So each run begins with its share of the long
tests, and the others keep their order: neighbours share fixtures of a module.

A line of `longest.txt` is a test that takes more than five seconds, with all its cases, or a module or folder
(ending with a slash) of such tests whose fixture is dear: these stay together.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

_LONGEST = Path(__file__).with_name("longest.txt")
_Item = TypeVar("_Item")


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes > 1:
        longest = frozenset(_LONGEST.read_text().split())
        items[:] = spread(items, [part_of(item.nodeid, longest) for item in items], processes)


def part_of(name: str, longest: frozenset[str]) -> str:
    """What stays together with this test at the beginning of a run; empty when it is none of the longest."""
    module = name.partition("::")[0]
    for shared in (module, f"{module.rpartition('/')[0]}/"):
        if shared in longest:
            return shared
    return name if name.partition("[")[0] in longest else ""


def spread(items: Sequence[_Item], parts: Sequence[str], processes: int) -> list[_Item]:
    """Each part goes to the process that has the fewest tests of parts so far."""
    long: defaultdict[str, list[_Item]] = defaultdict(list)
    others = []
    for item, part in zip(items, parts, strict=True):
        if part:
            long[part].append(item)
        else:
            others.append(item)
    shares: list[list[_Item]] = [[] for _ in range(processes)]
    for together in sorted(long.values(), key=len, reverse=True):
        min(shares, key=len).extend(together)
    arranged: list[_Item] = []
    for process, share in enumerate(shares):
        size = (len(items) - len(arranged)) // (processes - process)
        short = max(0, size - len(share))
        arranged += [*share, *others[:short]]
        others = others[short:]
    return arranged + others
