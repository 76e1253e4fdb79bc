"""Every guard of the core is needed: without it, a story or the simulation turns red.

All mutants are hunted with the variable CI set. Otherwise those that were noticed before are left out until
their module, their own text or what notices them has changed, since they were hunted here last or since this
branch left origin/main.
"""

import ast
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.simulation.hunt import JUDGES, learned
from tests.simulation.mutant import GUARDS, MUTANTS, Mutant, path_of, source_of

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
def _of_all_judges() -> tuple[Path, ...]:
    """The files that all judges and the hunt itself need."""
    tests = _ROOT / "tests"
    names = ("hunt", "machine", "mutant", "people", "settling", "shapes")
    files = [tests / "simulation" / f"{name}.py" for name in names]
    files += [
        tests / f"{name}.py" for name in ("invariants", "pretend_processes", "simulated_engine", "world")
    ]
    return (*files, *(path for path in sorted((tests / "core").glob("*.py")) if path not in JUDGES))


_noticed_by = cache(learned)


def _files_of(mutant: Mutant) -> tuple[Path, ...]:
    """As long as these stay as they are, the judge of last time notices the mutant."""
    judges = [judge for judge in JUDGES if judge.name == _noticed_by().get(mutant.name)]
    return (path_of(mutant.module), *judges, *_of_all_judges())


@cache
def _text(path: Path) -> str:
    return path.read_text()


def _state(mutant: Mutant) -> str:
    parts = (mutant.scope, mutant.anchor, *map(_text, _files_of(mutant)))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _git(*arguments: str) -> list[str] | None:
    """Its lines; None where it fails."""
    done = subprocess.run(["git", "-C", _ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


@cache
def _changed() -> frozenset[Path] | None:
    """The files that differ from origin/main where this branch left it; None where git does not know it."""
    since = _git("merge-base", "HEAD", "origin/main")
    if since is None:
        return None
    names = _git("diff", "--name-only", *since)
    new = _git("ls-files", "--others", "--exclude-standard")
    return None if names is None or new is None else frozenset(_ROOT / name for name in names + new)


def _is_as_it_was(mutant: Mutant) -> bool:
    changed = _changed()
    files = (GUARDS / f"{mutant.module}.txt", *_files_of(mutant))
    return changed is not None and changed.isdisjoint(files)


@cache
def _suspects() -> tuple[Mutant, ...]:
    return MUTANTS if os.environ.get("CI") else tuple(each for each in MUTANTS if not _is_as_it_was(each))


def _is_known(config: pytest.Config, name: str, state: str) -> bool:
    """Whether it was noticed here in this state."""
    assert config.cache is not None
    return not os.environ.get("CI") and config.cache.get(f"mutants/{name}", "") == state


def _know(config: pytest.Config, name: str, state: str) -> None:
    assert config.cache is not None
    config.cache.set(f"mutants/{name}", state)


@pytest.mark.parametrize("share", range(_SHARES))
def test_each_missing_guard_is_noticed(share: int, pytestconfig: pytest.Config) -> None:
    states = {each.name: _state(each) for each in _suspects()[share::_SHARES]}
    names = [name for name, state in states.items() if not _is_known(pytestconfig, name, state)]
    assert not names or _unnoticed(names) == ""
    for name in names:
        _know(pytestconfig, name, states[name])


def test_the_rules_as_they_are_stay_green(pytestconfig: pytest.Config) -> None:
    """Or every mutant would be noticed."""
    state = hashlib.sha256("".join(map(_state, _suspects())).encode()).hexdigest()
    if _suspects() and not _is_known(pytestconfig, "nothing", state):
        assert _unnoticed(["nothing"]) == "nothing\n"
        _know(pytestconfig, "nothing", state)


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
