"""A copy of the checkout in which one fault at a time is planted and judged.

The whole checkout is copied, so that each process that a test starts loads the fault too: the launcher of our
interpreters (ipc/launch.py) searches the folder that it lies in first. The interpreter and its packages are
those of the checkout.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO

from tests.house_rules import ROOT
from tests.mutation.judge import COULD_NOT_RUN

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# Exit codes of pytest: all passed, some failed; a module that cannot be imported has two others.
_GREEN, _INTERRUPTED, _USAGE = 0, 2, 4


class Outcome(Enum):
    SURVIVED = "survived"
    KILLED = "killed"
    TIMED_OUT = "timed out"
    # The module cannot be imported, which every test would notice and which shows nothing of any.
    NOT_LOADED = "not loaded"


@dataclass(frozen=True)
class Finding:
    outcome: Outcome
    test: str = ""


class Slot:
    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder / "checkout"
        self.output = folder / "output.txt"
        _copy(root, self.folder)
        environment = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
        self._judge = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.judge"],
            cwd=self.folder,
            # Temporary files of tests lie beside the copy and go with it.
            env={**environment, "PYTEST_DEBUG_TEMPROOT": str(folder), "CI": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def close(self) -> None:
        self._judge.communicate()

    def judged(self, tests: list[str], seconds: float) -> Finding:
        """Of the copy as it is."""
        orders, findings = self._judge.stdin, self._judge.stdout
        assert orders is not None
        assert findings is not None
        order = {"tests": tests, "seconds": seconds, "output": str(self.output)}
        code, test = _asked(orders, findings, order)
        if code == COULD_NOT_RUN:
            raise SystemExit(f"{self.output.read_text()}\nThese tests could not be run: {tests}")
        if code is None:
            return Finding(Outcome.TIMED_OUT)
        if code == _GREEN:
            return Finding(Outcome.SURVIVED)
        if code in (_INTERRUPTED, _USAGE) and not test:
            return Finding(Outcome.NOT_LOADED)
        return Finding(Outcome.KILLED, test)

    def judged_with(self, module: str, text: str, tests: list[str], seconds: float) -> Finding:
        """With another text of a module."""
        path = self.folder / f"{module.replace('.', '/')}.py"
        original = path.read_text()
        try:
            self._write(path, text)
            return self.judged(tests, seconds)
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: str) -> None:
        """Bytecode is known by the second in which its source was written, and the size of that."""
        then = path.stat().st_mtime
        path.write_text(text)
        os.utime(path, (then + 2, then + 2))


def _asked(orders: IO[str], findings: IO[str], order: dict[str, object]) -> tuple[int | None, str]:
    orders.write(json.dumps(order) + "\n")
    orders.flush()
    line = findings.readline()
    if not line:
        raise SystemExit("The process that runs the tests has ended; its last words are above.")
    found = json.loads(line)
    return found["code"], found["test"]


def _copy(root: Path, folder: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "."], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
