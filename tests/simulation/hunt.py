"""Stories and simulation against rules that lack a guard: `python -m tests.simulation.hunt NAME…`.

Each mutant gets a fork of this process, warm but without the rules. The stories are told first, without
pytest around them: most mutants end there. The names of those nobody noticed are printed, one a line;
`nothing` is the name of the rules as they are.
"""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import hypothesis.stateful  # noqa: F401  Imported before the forks, or each would do it again.
import pytest

from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

_TESTS = Path(__file__).resolve().parent.parent
_STORIES = sorted((_TESTS / "core" / "stories").glob("*.txt"))
_WANTED = (str(_TESTS / "core"), str(_TESTS / "simulation" / "test_simulation.py"))
# Rules that hang are noticed too. Of the processor's time, so that a busy machine makes nobody look guilty:
# several times what the stories take, and what the rest takes.
_STORIES_SECONDS_MAX = 4.0
_REST_SECONDS_MAX = 6.0
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
        # Whatever a mutant raises, it has been noticed.
        code: int = _RED
        try:
            code = judge(mutant)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (_GREEN, _RED, -signal.SIGVTALRM):
        raise SystemExit(f"the tests could not be run, pytest ended with {code}")
    return code != _GREEN


def judge(mutant: Mutant | None) -> int:
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if mutant is not None:
        mutate(mutant)
    signal.setitimer(signal.ITIMER_VIRTUAL, _STORIES_SECONDS_MAX)
    if not stories_end_as_written():
        return _RED
    signal.setitimer(signal.ITIMER_VIRTUAL, _REST_SECONDS_MAX)
    options = (
        "-x",
        "-q",
        "--tb=line",
        "--assert=plain",
        "--timeout=0",
        f"--ignore={_TESTS / 'core' / 'test_stories.py'}",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    )
    return pytest.main([*options, *_WANTED])


def stories_end_as_written() -> bool:
    """Imported here: with these come the rules."""
    from tests.core.story import retell

    return all(retell(story := path.read_text()) == story for path in _STORIES)


def main() -> None:
    chosen: dict[str, Mutant | None] = {"nothing": None} | {each.name: each for each in MUTANTS}
    for name in sys.argv[1:]:
        if not is_noticed(chosen[name]):
            print(name, flush=True)


if __name__ == "__main__":
    main()
