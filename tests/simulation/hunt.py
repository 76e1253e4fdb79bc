"""Stories and simulation against a core that lacks a guard: `python -m tests.simulation.hunt NAME…`.

Each mutant gets a fork of this process, warm but without the core. The names of those that no test noticed
are printed, one a line; `nothing` is the name of the core as it is. The test that noticed a mutant last time
runs first: `--learn [NAME…]` writes noticed_by.txt anew, whole or for some. When that file is wrong or empty
the hunt only takes longer.
"""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import hypothesis.stateful  # noqa: F401  Imported before the forks, or each would do it again.
import pytest

from tests.simulation.mutant import MUTANTS, Mutant, source_of

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
# Of one judge; a core that hangs is noticed too. It is the processor's time, so that a busy machine makes
# nothing look guilty, and several times what the slowest takes.
_SECONDS_MAX = 6.0


def mutate(mutant: Mutant) -> None:
    """Put the changed module where every import finds it."""
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[mutant.module] = module
    exec(compile(mutant.applied_to(source_of(mutant.module)), spec.origin, "exec"), module.__dict__)


def noticed_by(mutant: Mutant | None, likely: str = "") -> str:
    """The name of the story or file that turned red; empty when none did."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever a mutant raises on the way, the judge named last has noticed it.
        try:
            ask_all(mutant, likely, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        asked = told.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGVTALRM):
        raise SystemExit(f"the tests could not be run, they ended with {code}")
    if not asked:
        raise SystemExit(f"{mutant and mutant.name}: its module cannot be imported, which proves nothing")
    return asked[-1]


def ask_all(mutant: Mutant | None, likely: str, writing: int) -> None:
    """Write the name of each judge before it is asked, and an empty line when all were green."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if mutant is not None:
        mutate(mutant)
    for judge in sorted(_JUDGES, key=lambda judge: judge.name != likely):
        os.write(writing, f"{judge.name}\n".encode())
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_MAX)
        if not is_green(judge):
            return
    os.write(writing, b"\n")


def is_green(judge: Path) -> bool:
    """A story needs no pytest around it. Imported here: with the stories comes the core."""
    from tests.core.story import retell

    if judge.suffix == ".txt":
        return retell(story := judge.read_text()) == story
    code = pytest.main([*_OPTIONS, str(judge)])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), code
    return code == pytest.ExitCode.OK


def learned() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _LEARNED.read_text().splitlines())


def learn(names: list[str]) -> None:
    """Stopped in the middle, it keeps what it found out so far."""
    found = learned()
    for mutant in MUTANTS:
        if not names or mutant.name in names:
            found[mutant.name] = noticed_by(mutant, found.get(mutant.name, ""))
            known = sorted(each.name for each in MUTANTS if each.name in found)
            _LEARNED.write_text("".join(f"{name} {found[name]}\n" for name in known))


def main() -> None:
    # More would take longer than a judge may.
    os.environ.setdefault("HERMES_SIMULATION_EXAMPLES", "15")
    if sys.argv[1:2] == ["--learn"]:
        learn(sys.argv[2:])
        return
    chosen: dict[str, Mutant | None] = {"nothing": None} | {each.name: each for each in MUTANTS}
    likely = learned()
    for name in sys.argv[1:]:
        if not noticed_by(chosen[name], likely.get(name, "")):
            print(name, flush=True)


if __name__ == "__main__":
    main()
