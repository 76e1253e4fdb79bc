"""Every guard of the rules is needed: without it, a story or the simulation turns red."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

_ROOT = Path(__file__).resolve().parent.parent.parent
# Each share is one process; enough of them to keep a few CPUs busy.
_SHARES = 12


def _unnoticed(names: list[str]) -> str:
    environment = {**os.environ, "HERMES_SIMULATION_EXAMPLES": "15"}
    environment.pop("HERMES_REWRITE_STORIES", None)
    command = [sys.executable, "-m", "tests.simulation.hunt", *names]
    hunt = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True)
    return hunt.stdout


@pytest.mark.parametrize("share", range(_SHARES))
def test_each_missing_guard_is_noticed(share: int) -> None:
    assert _unnoticed([mutant.name for mutant in MUTANTS[share::_SHARES]]) == ""


def test_the_rules_as_they_are_stay_green() -> None:
    assert _unnoticed(["nothing"]) == "nothing\n"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_guard_is_where_the_mutant_says(mutant: Mutant) -> None:
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_text().count(mutant.source) == 1
