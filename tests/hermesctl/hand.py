"""hermesctl as a person has it: a real process, its output read as it comes."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from tests import warm
from tests.hermesctl.peer import DEADLINE_SECONDS

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("HERMES", "XDG", "NO_COLOR"))
    }
    # The hub is out of reach where tests run; told so, its library does not try for seconds.
    return {**kept, "PYTHONPATH": str(ROOT), "TZ": "UTC", "HF_HUB_OFFLINE": "1", **more}


def hermesctl(home: Path, *line: str, stdin: str = "", cwd: Path | None = None, **more: str) -> Result:
    """Runs a command to its end."""
    done = warm.run(
        [sys.executable, "-m", "hermesctl", "--home", str(home), *line],
        input=stdin,
        timeout=DEADLINE_SECONDS * 2,
        env=environment(**more),
        cwd=cwd or ROOT,
    )
    return Result(done.returncode, done.stdout, done.stderr)


class Running:
    """A command that is still at it; its output can be awaited piece by piece."""

    def __init__(self, home: Path, *line: str) -> None:
        self._process = warm.Popen[bytes](
            [sys.executable, "-m", "hermesctl", "--home", str(home), *line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=ROOT,
        )
        self._changed = threading.Condition()
        self._text = {"out": "", "err": ""}
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe))
            for name, pipe in (("out", self._process.stdout), ("err", self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.end()

    def wait_for(self, text: str, where: str = "out") -> str:
        """All that was printed, once `text` is in it."""
        with self._changed:
            found = self._changed.wait_for(lambda: text in self._text[where], DEADLINE_SECONDS)
            assert found, (text, dict(self._text))
            return self._text[where]

    def press_ctrl_c(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> Result:
        code = self._process.wait(DEADLINE_SECONDS)
        for reader in self._readers:
            reader.join(DEADLINE_SECONDS)
        return Result(code, self._text["out"], self._text["err"])

    def _read(self, name: str, pipe: object) -> None:
        assert hasattr(pipe, "fileno")
        with pipe:  # type: ignore[attr-defined]
            while piece := os.read(pipe.fileno(), 4096):
                with self._changed:
                    self._text[name] += piece.decode()
                    self._changed.notify_all()
