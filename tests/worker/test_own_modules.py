"""A user's modules may have the names of ours."""

import subprocess
import sys
from pathlib import Path

from ipc.interpreter import PACKAGES

_LOADS = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from worker import agents
from worker.agents import Agent
agents.load("python", "theirs:agent")
import ipc, theirs, worker
assert theirs.seen == (worker.__file__, ipc.__file__), theirs.seen
print(*theirs.seen, "openai" in sys.modules)
"""


def test_packages_of_the_user_called_worker_and_ipc_are_found_instead_of_ours(tmp_path: Path) -> None:
    for name in ("worker", "ipc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "theirs.py").write_text(
        "import ipc, worker\nseen = worker.__file__, ipc.__file__\ndef agent(context): ...\n"
    )
    line = [sys.executable, "-P", "-c", _LOADS, str(PACKAGES), str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, cwd="/")
    assert done.stdout.split() == [
        str(tmp_path / "worker" / "__init__.py"),
        str(tmp_path / "ipc" / "__init__.py"),
        "False",
    ], done.stderr
