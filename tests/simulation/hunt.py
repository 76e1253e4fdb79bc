"""Stories and simulation against rules that lack a guard: `python -m tests.simulation.hunt NAME…`.

Each mutant gets a fork of this process, warm but without the rules. The names of those nobody noticed are
printed, one a line; `nothing` is the name of the rules as they are.
"""

import importlib.util
import os
import sys
from pathlib import Path

import hypothesis.stateful  # noqa: F401  Imported before the forks, or each would do it again.
import pytest

from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

_TESTS = Path(__file__).resolve().parent.parent
_WANTED = (str(_TESTS / "core"), str(_TESTS / "simulation" / "test_simulation.py"))
# Of one test, the longest of which is a few cruel days; rules that hang are noticed too.
_SECONDS_MAX = 10
_GREEN, _RED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED


def mutate(mutant: Mutant) -> None:
    """Put the changed module where every import finds it."""
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    module = importlib.util.module_from_spec(spec)
    sys.modules[mutant.module] = module
    exec(compile(source.replace(mutant.source, mutant.mutated), spec.origin, "exec"), module.__dict__)


def is_noticed(mutant: Mutant | None) -> bool:
    child = os.fork()
    if child == 0:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        if mutant is not None:
            mutate(mutant)
        options = (
            "-x",
            "-q",
            "--tb=line",
            "--assert=plain",
            f"--timeout={_SECONDS_MAX}",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        )
        os._exit(pytest.main([*options, *_WANTED]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (_GREEN, _RED):
        raise SystemExit(f"the tests could not be run, pytest ended with {code}")
    return code != _GREEN


def main() -> None:
    chosen: dict[str, Mutant | None] = {"nothing": None} | {each.name: each for each in MUTANTS}
    for name in sys.argv[1:]:
        if not is_noticed(chosen[name]):
            print(name, flush=True)


if __name__ == "__main__":
    main()
