"""The service as systemd runs it in a box; tests speak to its socket from outside."""

import subprocess
import sys
from pathlib import Path

from hermesctl.errors import NotRunning
from ipc.places import Places
from tests.house_rules import ROOT
from tests.service import Service
from tests.systemd.box import Box
from tests.waiting import until

UNIT = "hermes-supervisor.service"
# A restart takes a second of rest and the start of an interpreter.
BACK_SECONDS = 30.0


class Installed(Service):
    """`places` are those of the box; `variables` say for whom a command is run."""

    def __init__(self, box: Box, places: Places, scope: str, **variables: str) -> None:
        self.box = box
        self.scope = scope
        self._variables = variables
        self.inside = places
        self.places = Places(*(box.outside(path) for path in (places.config, places.state, places.runtime)))
        self.settings = ""
        self.process = None
        self._clients = []
        self._line = None
        self._hang_up = lambda: None

    def hermesctl(self, *arguments: str, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        line = (sys.executable, "-m", "hermesctl", *arguments)
        return self.box.try_to(*line, PYTHONPATH=str(ROOT), **self._variables)

    def ctl(self, *arguments: str) -> str:
        """What a command that must succeed prints."""
        done = self.hermesctl(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def systemctl(self, *words: str) -> str:
        return self.box.run("systemctl", f"--{self.scope}", *words, **self._variables).stdout.strip()

    def shown(self, name: str) -> str:
        return self.systemctl("show", UNIT, "--value", f"--property={name}")

    def set(self, settings: str) -> None:
        """Writes hermes.toml, readable by whoever the service runs as."""
        self.box.write(str(self.inside.settings_file), settings)

    def signal(self, name: str) -> int:
        """To the supervisor alone; its pid in the box."""
        pid = int(self.shown("MainPID"))
        self.box.run("kill", f"-{name}", str(pid))
        return pid

    def back(self, other_than: int) -> int:
        """The pid of the next supervisor, once it answers."""

        def answers() -> int:
            try:
                pid = int(self.status()["pid"])
            except NotRunning:
                return 0
            return pid if pid != other_than else 0

        return until(answers, BACK_SECONDS)

    def cgroups(self) -> dict[Path, list[str]]:
        """Every cgroup of the slice with the processes in it, as pids of the box; empty ones too."""
        listing = 'for f in $(find "$1" -name cgroup.procs 2>/dev/null); do echo "$f" $(cat "$f"); done'
        below = self.systemctl("show", "hermes-supervisor.slice", "--value", "--property=ControlGroup")
        if not below:
            return {}
        found = self.box.run("sh", "-c", listing, "sh", f"/sys/fs/cgroup{below}").stdout
        rows = (line.split() for line in found.splitlines())
        return {Path(row[0]).parent: row[1:] for row in rows}
