"""Stories and simulation against a core that lacks a guard: `python -m tests.simulation.hunt NAME…`.

The names of those that no test noticed are printed, one a line; `nothing` is the name of the core as it is.
noticed_by.txt has the test that noticed each mutant last time: `--learn [NAME…]` writes it anew, whole or for
some. When that file is wrong or empty the hunt only takes longer, for there are two rounds:

- The first asks that test alone, in a fork of a process that has imported the core and the tests. The
  function that holds the guard gets the code that it has without it: a tenth of what an import costs.
- A mutant that is not noticed there, or whose guard is in no function, gets a fork of a process without the
  core, which imports the changed module and asks all tests.
"""

import importlib
import importlib.util
import operator
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType

import hypothesis.stateful  # noqa: F401  Imported before the forks, or each would do it again.
import pytest

from tests.simulation.mutant import MUTANTS, Mutant, source_of

_TESTS = Path(__file__).resolve().parent.parent
_STORIES = sorted((_TESTS / "core" / "stories").glob("*.txt"))
# All but the one that tells the stories, which are judges by themselves.
_FILES = sorted(path for path in (_TESTS / "core").glob("test_*.py") if path.stem != "test_stories")
JUDGES = (*_STORIES, *_FILES, _TESTS / "simulation" / "test_simulation.py")
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


def swap_code(mutant: Mutant) -> None:
    """Change the function in the imported module: those that hold it need no import again."""
    module = importlib.import_module(mutant.module)
    code = compile(mutant.applied_to(source_of(mutant.module)), str(module.__file__), "exec")
    for name in mutant.scope.split("."):
        (code,) = (each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)
    operator.attrgetter(mutant.scope)(module).__code__ = code


def noticed_again(asked: Mapping[str, Mutant | None], likely: Mapping[str, str]) -> frozenset[str]:
    """The first round: the names of the mutants that the test of last time notices.

    The core as it is must be noticed by none of these tests.
    """
    pairs = [
        (name, judge)
        for name, mutant in asked.items()
        for judge in JUDGES
        if judge.name in (likely.values() if mutant is None else (likely.get(name),))
    ]
    reading, writing = os.pipe()
    prepared = os.fork()
    if prepared == 0:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            import_judges({judge for _, judge in pairs})
            for name, judge in pairs:
                if turns_red(asked[name], judge):
                    os.write(writing, f"{name}\n".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        names = told.read().split()
    os.waitpid(prepared, 0)
    return frozenset(names)


def import_judges(judges: Iterable[Path]) -> None:
    importlib.import_module("tests.core.story")
    files = [str(judge) for judge in judges if judge.suffix == ".py"]
    if files:
        pytest.main([*_OPTIONS, "--collect-only", *files])


def turns_red(mutant: Mutant | None, judge: Path) -> bool:
    """Asked in a fork. A mutant that cannot be made this way is left to the second round."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            if mutant is not None:
                swap_code(mutant)
            code = 1
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_MAX)
            code = 0 if is_green(judge) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (1, -signal.SIGVTALRM)


def unnoticed(names: Iterable[str]) -> Iterator[str]:
    chosen: dict[str, Mutant | None] = {"nothing": None} | {each.name: each for each in MUTANTS}
    asked = {name: chosen[name] for name in names}
    likely = learned()
    again = noticed_again(asked, likely)
    for name, mutant in asked.items():
        if name not in again and not noticed_by(mutant, likely.get(name, "")):
            yield name


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
    for judge in sorted(JUDGES, key=lambda judge: judge.name != likely):
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
    for name in unnoticed(sys.argv[1:]):
        print(name, flush=True)


if __name__ == "__main__":
    main()
