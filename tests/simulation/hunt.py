"""Stories and simulation against rules that lack a guard: `python -m tests.simulation.hunt NAME…`.

Each mutant gets a fork of this process, warm but without the rules. The names of those nobody noticed are
printed, one a line; `nothing` is the name of the rules as they are. Who noticed a mutant last time is asked
first: `--learn` writes noticed_by.txt anew. When that file is wrong or empty it only takes longer.
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
_FILES = sorted((_TESTS / "core").glob("test_*.py"))
_JUDGES = (*_STORIES, *_FILES, _TESTS / "simulation" / "test_simulation.py")
_LEARNED = Path(__file__).with_name("noticed_by.txt")
_OPTIONS = (
    "-x",
    "-q",
    "--tb=line",
    "--assert=plain",
    "--timeout=0",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
)
# Of one judge; rules that hang are noticed too. It is the processor's time, so that a busy machine makes
# nobody look guilty, and several times what the slowest takes.
_SECONDS_MAX = 6.0


def mutate(mutant: Mutant) -> None:
    """Put the changed module where every import finds it."""
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    module = importlib.util.module_from_spec(spec)
    sys.modules[mutant.module] = module
    exec(compile(source.replace(mutant.source, mutant.mutated), spec.origin, "exec"), module.__dict__)


def noticed_by(mutant: Mutant | None, likely: str = "") -> str:
    """The name of what turned red; empty when nothing did."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever a mutant raises on the way, it has been noticed.
        verdict = "an exception"
        try:
            verdict = first_red(mutant, likely)
        finally:
            os.write(writing, verdict.encode())
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        verdict = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGVTALRM):
        raise SystemExit(f"the tests could not be run, they ended with {code}")
    return verdict if code == 0 else "a hang"


def first_red(mutant: Mutant | None, likely: str) -> str:
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if mutant is not None:
        mutate(mutant)
    for judge in sorted(_JUDGES, key=lambda judge: judge.name != likely):
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_MAX)
        if not is_green(judge):
            return judge.name
    return ""


def is_green(judge: Path) -> bool:
    """A story needs no pytest around it. Imported here: with the stories come the rules."""
    from tests.core.story import retell

    if judge.suffix == ".txt":
        return retell(story := judge.read_text()) == story
    code = pytest.main([*_OPTIONS, str(judge)])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), code
    return code == pytest.ExitCode.OK


def learn() -> None:
    """Stopped in the middle, it keeps what it found out so far."""
    with _LEARNED.open("w") as learned:
        for mutant in MUTANTS:
            print(mutant.name, noticed_by(mutant), file=learned, flush=True)


def main() -> None:
    if sys.argv[1:] == ["--learn"]:
        learn()
        return
    chosen: dict[str, Mutant | None] = {"nothing": None} | {each.name: each for each in MUTANTS}
    likely = dict(line.split(" ", 1) for line in _LEARNED.read_text().splitlines())
    for name in sys.argv[1:]:
        if not noticed_by(chosen[name], likely.get(name, "")):
            print(name, flush=True)


if __name__ == "__main__":
    main()
