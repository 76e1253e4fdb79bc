"""The home of hermes-agent: a folder with its settings, which modules and objects of it know by many paths.

Some two dozen variables of its modules hold paths below the home that they were imported with. A worker
learns its session, and so its home, after the import. `Home.move` then rewrites these variables. They are
looked for in the zygote: to look at every variable of two thousand modules would copy the pages of all these
objects into each fork, some 30 MB, since Python writes a reference count into what it looks at.
"""

import json
import os
import sys
from itertools import takewhile
from pathlib import Path

from ipc.messages import ModelEndpoint

# The module or object, and the name in it.
_Variable = tuple[object, str]

_VARIABLE = "HERMES_HOME"
_CONTEXT_TOKENS = 128_000
# AIAgent is built with it before the first turn, and is never asked to use it.
NOWHERE = ModelEndpoint("http://127.0.0.1:9/v1", "none", "none")


class Home:
    """The home of the AIAgent in this process; it begins as this folder, before hermes-agent is imported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: list[_Variable] = []
        self._last_seen = ""
        os.environ[_VARIABLE] = str(path)

    def find_paths(self) -> None:
        """Looks for variables in the modules that were imported since the last call."""
        # From the newest back, since a look at the older names would copy them; in C, since other threads
        # import, too.
        for name in tuple(takewhile(self._last_seen.__ne__, reversed(sys.modules))):
            self._held += _paths_below(self.path, sys.modules.get(name))
        self._last_seen = next(reversed(sys.modules))

    def move(self, path: Path, *holders: object) -> None:
        """Makes another folder the home; the attributes of the holders are rewritten, too."""
        self.find_paths()
        before = self.path
        held = [found for holder in holders for found in _paths_below(before, holder)]
        for holder, name in (*self._held, *held):
            value = getattr(holder, name, None)
            if isinstance(value, Path) and value.is_relative_to(before):
                setattr(holder, name, path / value.relative_to(before))
        os.environ[_VARIABLE] = str(path)
        self.path = path


def _paths_below(home: Path, holder: object) -> list[_Variable]:
    return [
        (holder, name)
        for name, value in tuple(getattr(holder, "__dict__", {}).items())
        if isinstance(value, Path) and value.is_relative_to(home)
    ]


def write_home(home: Path) -> None:
    """Makes a home for AIAgent, unless there is one, with settings that suit a host.

    Without `context_length` the constructor asks the network, for up to 20 s. Reviews of skills and memory
    would go on in a thread after the turn.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = home / "config.yaml"
    if config.exists():
        return
    model = {
        "default": NOWHERE.name,
        "provider": "custom",
        "base_url": NOWHERE.base_url,
        "api_mode": "chat_completions",
        "context_length": _CONTEXT_TOKENS,
    }
    settings = {
        "model": model,
        "agent": {"environment_probe": False},
        "approvals": {"mode": "manual"},
        "skills": {"creation_nudge_interval": 0},
        "memory": {"nudge_interval": 0},
    }
    config.write_text(json.dumps(settings, indent=2) + "\n")  # which is YAML, too
