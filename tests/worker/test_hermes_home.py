"""The home of hermes-agent: the paths that its modules keep follow it, and no module is looked at twice."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from worker.agents.hermes_home import Home


class Watched(ModuleType):
    """Counts how often its variables are read."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            Watched.looks += 1
        return super().__getattribute__(name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HERMES_HOME", "")
    return Home(tmp_path / "first")


def test_paths_of_modules_and_objects_follow_the_home(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, agent = ModuleType("of_theirs"), SimpleNamespace(log=home.path / "log", other=Path("/else"))
    monkeypatch.setitem(sys.modules, "of_theirs", module)
    module.skills = home.path / "skills"  # type: ignore[attr-defined]
    home.move(tmp_path / "second", agent)
    assert module.skills == tmp_path / "second/skills"
    assert (agent.log, agent.other) == (tmp_path / "second/log", Path("/else"))
    late = ModuleType("imported_later")
    monkeypatch.setitem(sys.modules, "imported_later", late)
    late.state = home.path / "state"  # type: ignore[attr-defined]
    home.move(tmp_path / "third")
    assert (module.skills, late.state) == (tmp_path / "third/skills", tmp_path / "third/state")


def test_a_fork_looks_at_no_module_that_the_zygote_has_seen(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look copies the pages of all that the module refers to."""
    monkeypatch.setitem(sys.modules, "of_theirs", Watched("of_theirs"))
    Watched.looks = 0
    home.find_paths()
    assert Watched.looks == 1
    home.move(tmp_path / "second")
    assert Watched.looks == 1
