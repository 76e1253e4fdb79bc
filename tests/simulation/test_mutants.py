"""Every guard of the core is needed: without it, a story or the simulation turns red.

All mutants are hunted with the variable CI set. Otherwise those that were noticed before are left out until
their module, their own text or what judges them has changed.
"""

import ast
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.simulation.hunt import learned
from tests.simulation.mutant import MUTANTS, Mutant, source_of

_ROOT = Path(__file__).resolve().parent.parent.parent
# Each share is one process, which imports everything once.
_SHARES = 4


def _unnoticed(names: list[str]) -> str:
    environment = {**os.environ, "HERMES_SIMULATION_EXAMPLES": "15"}
    environment.pop("HERMES_REWRITE_STORIES", None)
    command = [sys.executable, "-m", "tests.simulation.hunt", *names]
    hunt = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True)
    return hunt.stdout


@cache
def _judges() -> str:
    """The text of all that can turn red, or says how."""
    tests = _ROOT / "tests"
    names = ("hunt", "machine", "mutant", "people", "settling", "shapes", "test_simulation")
    files = [tests / "simulation" / f"{name}.py" for name in names]
    files += [
        tests / f"{name}.py" for name in ("invariants", "pretend_processes", "simulated_engine", "world")
    ]
    files += sorted((tests / "core").rglob("*.py"))
    files += sorted((tests / "core" / "stories").iterdir())
    return "".join(path.read_text() for path in files)


def _state(mutant: Mutant) -> str:
    """Changes with whatever could let the mutant pass unnoticed."""
    parts = (mutant.scope, mutant.anchor, source_of(mutant.module), _judges())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("share", range(_SHARES))
def test_each_missing_guard_is_noticed(share: int, pytestconfig: pytest.Config) -> None:
    noticed = pytestconfig.cache
    assert noticed is not None
    mutants = list(MUTANTS[share::_SHARES])
    states = {mutant.name: _state(mutant) for mutant in mutants}
    if not os.environ.get("CI"):
        mutants = [each for each in mutants if noticed.get(f"mutants/{each.name}", "") != states[each.name]]
    assert not mutants or _unnoticed([mutant.name for mutant in mutants]) == ""
    for mutant in mutants:
        noticed.set(f"mutants/{mutant.name}", states[mutant.name])


def test_the_rules_as_they_are_stay_green() -> None:
    assert _unnoticed(["nothing"]) == "nothing\n"


@cache
def _unparsed(module: str) -> str:
    return ast.unparse(ast.parse(source_of(module)))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_guard_is_where_the_mutant_says(mutant: Mutant) -> None:
    assert ast.unparse(mutant.applied_to(source_of(mutant.module))) != _unparsed(mutant.module)


def test_a_mutant_has_one_name() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_each_mutant_has_the_test_that_noticed_it() -> None:
    noticed = {name for name, test in learned().items() if test}
    assert noticed == {each.name for each in MUTANTS}
