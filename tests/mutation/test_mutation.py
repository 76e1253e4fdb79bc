"""The tool that plants faults: what it plants, finds and keeps. The hunt itself is not run."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.house_rules import ROOT
from tests.mutation import table, verdicts
from tests.mutation.faults import faults_of, sample
from tests.mutation.registry import REGISTRY, all_modules, modules_below, registered_tests
from tests.mutation.slot import Finding, Outcome, Slot
from tests.mutation.table import Counts
from tests.mutation.verdicts import Verdict, key_of

_SOURCE = '''
class Door:
    """One that is closed once."""

    def __init__(self, limit: int = 1) -> None:
        self.limit = limit

    async def close(self, seen: list[int]) -> None:
        """Closes it."""
        await self.line.close()
        log.info("closed")
        if len(seen) < self.limit and self.is_open:
            raise ValueError(f"{seen}")
        if self.is_stuck:
            self.count = min(self.most, len(seen))
        for each in [one for one in seen if one.kind][: self.most]:
            self.count += each
        self.is_open = False
'''


def _planted(source: str) -> set[str]:
    """The lines that faults put in the place of others, an empty one for a line that is gone."""
    lines = ast.unparse(ast.parse(source)).splitlines()
    changed = set()
    for fault in faults_of("door", source):
        faulty = ast.unparse(fault.applied_to(source)).splitlines()
        changed.add("".join(line.strip() for line in faulty if line not in lines))
    return changed


def test_faults_are_single_and_of_every_kind() -> None:
    assert _planted(_SOURCE) == {
        "def __init__(self, limit: int=0) -> None:",
        "pass",
        "return",
        "if not (len(seen) < self.limit and self.is_open):",
        "if len(seen) <= self.limit and self.is_open:",
        "if len(seen) < self.limit or self.is_open:",
        "if len(seen) < self.limit:",
        "if self.is_open:",
        "if not self.is_stuck:",
        "self.count = self.most",
        "self.count = len(seen)",
        "for each in [one for one in seen][:self.most]:",
        "for each in [one for one in seen if one.kind]:",
        "self.is_open = True",
    }


def test_lines_of_the_log_and_types_are_left_alone() -> None:
    assert faults_of("door", "def f(a: Literal[1]) -> Literal[0]:\n    log.info(a + 1 < 2)\n") == []


def test_a_sample_stays_when_other_code_changes() -> None:
    before = faults_of("door", _SOURCE)
    after = faults_of("door", f"def other(a):\n    return a.b or a.c\n{_SOURCE}")
    chosen = {key_of(fault) for fault in sample(before, 5, seed=1)}
    assert len(chosen & {key_of(fault) for fault in sample(after, 7, seed=1)}) == 5
    assert chosen != {key_of(fault) for fault in sample(before, 5, seed=2)}


def test_a_verdict_is_found_again_after_renaming(tmp_path: Path) -> None:
    fault = faults_of("door", _SOURCE)[-1]
    kept = {key_of(fault): Verdict("accepted", "nobody looks"), ("f", "a => b"): Verdict("survived", "")}
    verdicts.write("door", kept, tmp_path)
    renamed = faults_of("door", _SOURCE.replace("is_open", "open_now").replace("seen", "guests"))[-1]
    found = verdicts.read("door", tmp_path)
    assert found == kept
    assert found[key_of(renamed)].reason == "nobody looks"
    (tmp_path / "door.txt").write_text("f\n    a => b\n        accepted:\n")
    with pytest.raises(ValueError, match=r"door\.txt: `accepted:` is no verdict"):
        verdicts.read("door", tmp_path)


def test_every_survivor_has_a_verdict() -> None:
    unjudged = [
        f"{path.stem}: {scope}: {anchor}"
        for path in sorted(verdicts.FOLDER.glob("*.txt"))
        for (scope, anchor), verdict in verdicts.read(path.stem).items()
        if verdict.kind == "survived"
    ]
    assert not unjudged, "write a test, or `equivalent: REASON` or `accepted: REASON`"


def test_the_page_of_counts_is_as_the_tool_writes_it() -> None:
    text = table.PAGE.read_text()
    assert table.rendered(table.read(text), text) == text, "run `python -m tests.mutation --table`"
    counts = {
        "a.b": Counts(tried=10, killed=7, timed_out=1, equivalent=2),
        "a.c": Counts(tried=1, survived=1),
    }
    assert table.read(table.rendered(counts)) == counts
    below = "\n## Chosen by hand\n\n| `a.b` | a test |\n"
    assert table.rendered(counts, f"# An older page\n{below}") == table.rendered(counts) + below
    assert "| a/ | 11 | 7 | 1 | 2 | 0 | 1 | 89 % |" in table.rendered(counts)


def test_registered_tests_and_modules_exist() -> None:
    registered = REGISTRY.read_text()
    names = [line.split('"')[1] for line in registered.splitlines() if line.startswith('"')]
    for name in names:
        assert modules_below([name])
        for test in registered_tests(name):
            path, _, function = test.partition("::")
            assert f"def {function}" in (ROOT / path).read_text(), test
    assert not any(module.startswith("supervisor.core.") for module in all_modules())


@pytest.fixture
def slot(tmp_path: Path) -> Iterator[Slot]:
    """Of a checkout with one module and three tests."""
    root = tmp_path / "root"
    for part in ("tests/__init__.py", "tests/mutation/__init__.py", "tests/mutation/judge.py"):
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).write_text((ROOT / part).read_text())
    (root / "door.py").write_text("def is_open() -> bool:\n    return True\n")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (root / "test_door.py").write_text(
        "import subprocess, sys, time\nimport door\n\n"
        "def test_here():\n    assert door.is_open()\n\n"
        "def test_elsewhere():\n"
        "    line = [sys.executable, '-c', 'import door; assert door.is_open()']\n"
        "    subprocess.run(line, check=True)\n\n"
        "def test_hang():\n"
        "    subprocess.Popen(['sleep', '3600'], start_new_session=True)\n    time.sleep(3600)\n"
    )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    made = Slot(tmp_path / "slot", root)
    yield made
    made.close()


def test_a_fault_is_seen_by_every_process_and_leaves_none_behind(slot: Slot) -> None:
    here, elsewhere = ["test_door.py::test_here"], ["test_door.py::test_elsewhere"]
    faulty = "def is_open() -> bool:\n    return None\n"
    assert slot.judged(here + elsewhere, 60) == Finding(Outcome.SURVIVED)
    assert slot.judged_with("door", faulty, here, 60) == Finding(Outcome.KILLED, here[0])
    assert slot.judged_with("door", faulty, elsewhere, 60) == Finding(Outcome.KILLED, elsewhere[0])
    assert slot.judged_with("door", "raise OSError\n", here, 60) == Finding(Outcome.NOT_LOADED)
    assert slot.judged(here + elsewhere, 60) == Finding(Outcome.SURVIVED)
    assert slot.judged(["test_door.py::test_hang"], 3) == Finding(Outcome.TIMED_OUT)
    assert not [each for each in psutil.Process().children(recursive=True) if each.name() == "sleep"]
