"""The entry of a python agent: which imports a zygote shares, and what is said of one that fails."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.agents import agent_entry
from worker.agents.agent_entry import _Trial
from worker.errors import AgentError

AGENT = "def agent(context): ...\n"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user; nothing that is imported from it stays."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (AGENT, _Trial.SHARED),
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n", 2),
        ("import socket\nkept = socket.socket()\n", 2),
        ("import socket\nsocket.socket().close()\n", _Trial.SHARED),
        ("raise KeyError\n", _Trial.OF_WORKERS),
        ("import sys\nsys.exit(0)\n", _Trial.OF_WORKERS),
        ("import os\nos.write(1, b'words')\nos.write(2, b'words')\n", _Trial.SHARED),
        ("def agent(:\n", _Trial.IMPOSSIBLE),
        ("import no_such_module_at_all\n", _Trial.IMPOSSIBLE),
    ],
)
def test_what_an_import_leaves_behind_is_found_out_in_another_process(
    code: Path, capfd: pytest.CaptureFixture[str], source: str, outcome: int
) -> None:
    (code / "theirs_tried.py").write_text(source)
    sys.path.insert(0, str(code))
    importlib.invalidate_caches()
    assert agent_entry._tried("theirs_tried") == outcome
    assert "theirs_tried" not in sys.modules
    assert capfd.readouterr() == ("", "")


def test_an_import_that_does_not_return_is_ended(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code / "theirs_endless.py").write_text("import signal\nwhile True: signal.pause()\n")
    sys.path.insert(0, str(code))
    monkeypatch.setattr(agent_entry, "_TRIAL_SECONDS_MAX", 0.01)
    before = os.listdir("/proc/self/fd")
    assert agent_entry._tried("theirs_endless") == -9
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("source", "shared"), [(AGENT, True), ("raise KeyError\n", False), ("import sys\nsys.exit()\n", False)]
)
def test_only_what_workers_can_share_is_imported_in_the_zygote(code: Path, source: str, shared: bool) -> None:
    (code / "theirs_shared.py").write_text(source)
    sys.path.insert(0, str(code))
    importlib.invalidate_caches()
    assert agent_entry.preload("theirs_shared:agent") is shared
    assert ("theirs_shared" in sys.modules) is shared


@pytest.mark.parametrize(
    ("entry", "source", "error", "hint"),
    [
        ("theirs_a:agent", "import none_such.part.of_it\n", "no module none_such", "install none_such into"),
        ("theirs_b.part:agent", "", "no module theirs_b.part", "name the folder"),
        ("theirs_c:agent", "raise SystemExit\n", "raised SystemExit", "import theirs_c"),
        (
            "theirs_d:Agent.answer",
            "class Agent: ...\n",
            "theirs_d has no Agent.answer",
            "define Agent.answer",
        ),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_with_what_to_do(
    code: Path, entry: str, source: str, error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = entry.partition(":")[0].partition(".")[0]
    (code / f"{name}.py").write_text(source)
    with pytest.raises(AgentError) as raised:
        agent_entry.load(entry, [str(code)], "mine")
    assert "[agents.mine] entry" in raised.value.error
    assert error in raised.value.error
    assert hint in raised.value.hint


def test_folders_of_the_user_are_searched_first_and_added_once(code: Path) -> None:
    (code / "theirs_found.py").write_text("class Agent:\n    @staticmethod\n    def answer(context): ...\n")
    for _ in range(3):
        function = agent_entry.load("theirs_found:Agent.answer", [str(code), "/no/such/folder"], "mine")
        assert function.__name__ == "answer"
    assert sys.path[:2] == [str(code), "/no/such/folder"]
    assert sys.path.count(str(code)) == 1
