"""One home and the supervisors that live in it one after the other, each as long as its doom lets it."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from ipc.places import find_places, make_private
from tests.crash.audience import Audience
from tests.crash.doomed_supervisor import MET, SURVEY
from tests.crash.scenarios import CLIPS

PATIENCE_SECONDS = 20.0
# More attempts than any test has deaths: only the play that is poison may end as poison.
_SETTINGS = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "nobody asks it"
[workers]
count = 16
spares = 1
[turns]
attempts_max = 5
[agents.apart]
kind = "python"
entry = "runtime:of_its_own"
[sessions."*plain"]
agent = "apart"
[agents.gentle]
kind = "acp"
command = ["nothing"]
cancel_grace = "3s"
[sessions."*cut"]
agent = "gentle"
[gateway]
listen = "off"
"""


class Forge:
    """The process that forks supervisors."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.doomed_supervisor"],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def begin(self, home: Path, point: str, when: str, count: int) -> int:
        """The pid of a new supervisor; the one before must have ended."""
        assert self._process.stdin is not None
        order = {"home": str(home), "point": point, "when": when, "count": count}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        return self._number(PATIENCE_SECONDS)

    def has_ended(self) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def status(self) -> int:
        """How the supervisor ended."""
        return self._number(PATIENCE_SECONDS)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()

    def _number(self, seconds: float) -> int:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], seconds)[0], "it did not answer"
        return int(self._process.stdout.readline())


class Home:
    """A folder with a journal, and who lives there now."""

    def __init__(self, folder: Path, forge: Forge) -> None:
        self.folder = folder
        self.places = find_places(str(folder))
        self._forge = forge
        self.pid = 0
        folder.mkdir(exist_ok=True)
        (folder / "hermes.toml").write_text(_SETTINGS)
        make_private(self.places.clips)
        for name, content in CLIPS.items():
            (self.places.clips / name).write_text(content)

    def begin(self, point: str = "", when: str = "", count: int = 1) -> None:
        self.pid = self._forge.begin(self.folder, point, when, count)

    def has_ended(self) -> bool:
        return self._forge.has_ended()

    def kill(self) -> int:
        """Ends the life if it has not ended by itself; its status."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
        return self._forge.status()

    def live(self, audience: Audience, point: str = "", when: str = "", count: int = 1) -> int:
        """One life before an audience: until its doom, or until all plays are over."""
        self.begin(point, when, count)
        try:
            audience.visit(self.has_ended, lambda: audience.is_content, PATIENCE_SECONDS)
        except AssertionError as stuck:
            raise AssertionError(f"{stuck}\n{self.log()}") from None
        finally:
            status = self.kill()
        return status

    def dies(self, audience: Audience, point: str, when: str, count: int = 1) -> bool:
        """One life that is to end at the point; whether it did."""
        before = len(self.deaths())
        assert self.live(audience, point, when, count) == -signal.SIGKILL, self.log()
        return self.deaths()[before:] == [f"{point} {when}"]

    def deaths(self) -> list[str]:
        """Where lives have met their doom, in order."""
        met = self.folder / MET
        return met.read_text().splitlines() if met.exists() else []

    def log(self) -> str:
        return (self.folder / "supervisor.log").read_text()[-3000:]

    def passed(self) -> list[str]:
        """The points that were passed by a life that was surveyed."""
        return (self.folder / SURVEY).read_text().splitlines()
