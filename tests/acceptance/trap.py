"""Modules that no interpreter of ours may run: each notes who has run it."""

import json
import os
import sys
from pathlib import Path

# What the program imports from the packages of its environment.
_PACKAGES = (
    "av", "click", "ctranslate2", "faster_whisper", "httpx2", "huggingface_hub", "msgspec", "numpy", "openai",
    "pip", "prompt_toolkit", "psutil", "rich", "sqlite_utils", "textual", "uvloop", "xllamacpp", "zmq",
)  # fmt: skip
# `python -m hermesctl` and `python -m supervisor` are looked for in the working directory by Python itself,
# before any code of ours runs.
_BY_NAME = {"hermesctl", "supervisor", "ipc"}


class Trap:
    """A folder full of such modules; `victims` are the command lines of those who have run one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "trap"
        self.folder.mkdir()
        self._notes = folder / "victims"
        self._notes.touch()
        self._notes.chmod(0o666)

    @property
    def victims(self) -> list[list[str]]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()]

    def module(self, path: Path) -> None:
        path.write_text(self._code("\n"))

    def fill(self) -> None:
        """A module for everything that is imported, and those that Python looks for at every start."""
        ours = {"worker", "stt_service", "model_service"}
        start = {"sitecustomize", "usercustomize"}
        for name in {*sys.stdlib_module_names, *_PACKAGES, *ours, *start} - _BY_NAME:
            self.module(self.folder / f"{name}.py")

    def user_site(self, home: Path) -> Path:
        """The user's site folder with a `.pth` file and a `usercustomize` in it."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folder = home / ".local" / "lib" / version / "site-packages"
        folder.mkdir(parents=True)
        (folder / "planted.pth").write_text(self._code("; "))
        self.module(folder / "usercustomize.py")
        return folder

    def _code(self, break_: str) -> str:
        """On one line for a `.pth` file; without an import that a trap would catch."""
        note = "posix.write(note, (repr(sys.orig_argv).replace(chr(39), chr(34)) + chr(10)).encode())"
        opened = f"note = posix.open({os.fspath(self._notes)!r}, posix.O_WRONLY | posix.O_APPEND)"
        return break_.join(("import posix, sys", opened, note, "posix.close(note)")) + "\n"
