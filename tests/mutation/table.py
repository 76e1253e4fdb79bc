"""docs/mutants.md: how many planted faults the tests notice, by package and by module.

The page keeps the counts of the last hunt in each module; the sums by package are computed from these rows.
What stands below the tables, from the first heading on, is written by hand and stays.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields

from tests.house_rules import ROOT

PAGE = ROOT / "docs" / "mutants.md"
_ROW = re.compile(r"^\| `(?P<module>[\w.]+)` \|(?P<counts>[ \d|]+?)\|[^|]*\|$", re.MULTILINE)
_BY_HAND = "\n## "
_COLUMNS = "tried | killed | timed out | equivalent | accepted | no verdict | noticed |"
_RULE = "---: | ---: | ---: | ---: | ---: | ---: | ---: |"
_HEAD = """# Planted faults

`python -m tests.mutation` plants single faults in modules outside `supervisor/core` and runs the tests that
`tests/mutation/tests_for.toml` names for them; it writes this page. `make mutants` does so for the modules
that have changed. A hunt takes a sample by lot (`--sample`, `--seed`): all faults of all modules would take
days on two processors. The core has its own mutants, each written by hand (`tests/simulation/guards`).

*Noticed* is the share of killed faults, among those that are not equivalent; a fault that made the tests
hang is noticed too. Each surviving fault has a verdict with a reason in `tests/mutation/verdicts`:
*equivalent*, when it makes no difference to anybody, or *accepted*. Not counted are faults with which the
module cannot be imported.
"""


@dataclass(frozen=True)
class Counts:
    tried: int = 0
    killed: int = 0
    timed_out: int = 0
    equivalent: int = 0
    accepted: int = 0
    survived: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def noticed(self) -> str:
        counted = self.tried - self.equivalent
        return f"{100 * (self.killed + self.timed_out) / counted:.0f} %" if counted else "–"

    @property
    def cells(self) -> str:
        return " | ".join([*map(str, astuple(self)), self.noticed])


def read(text: str) -> dict[str, Counts]:
    found = {}
    for row in _ROW.finditer(text):
        counts = [int(each) for each in row["counts"].split("|")]
        if len(counts) == len(fields(Counts)):
            found[row["module"]] = Counts(*counts)
    return found


def rendered(modules: Mapping[str, Counts], before: str = "") -> str:
    """The page; `before` is the one that it replaces."""
    _, heading, by_hand = before.partition(_BY_HAND)
    packages: dict[str, Counts] = defaultdict(Counts)
    for module, counts in modules.items():
        packages[module.rpartition(".")[0].replace(".", "/")] += counts
    return "\n".join(
        [
            _HEAD,
            f"| package | {_COLUMNS}",
            f"| --- | {_RULE}",
            *(f"| {package}/ | {counts.cells} |" for package, counts in sorted(packages.items())),
            f"| all | {sum(packages.values(), Counts()).cells} |",
            "",
            f"| module | {_COLUMNS}",
            f"| --- | {_RULE}",
            *(f"| `{module}` | {counts.cells} |" for module, counts in sorted(modules.items())),
            heading + by_hand,
        ]
    )


def update(modules: Mapping[str, Counts]) -> None:
    """Rows of modules that no longer exist go."""
    page = PAGE.read_text()
    kept = {**read(page), **modules}
    present = {name: kept[name] for name in kept if (ROOT / f"{name.replace('.', '/')}.py").exists()}
    PAGE.write_text(rendered(present, page))
