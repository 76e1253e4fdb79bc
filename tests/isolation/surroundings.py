"""A host full of targets: sockets of every kind that the attacks look for, a key file, a secret variable."""

import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipc import interpreter
from tests import other_user, warm
from tests.fake_model import FakeModel
from tests.house_rules import ROOT
from tests.other_user import NOBODY
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS

SECRET = "HERMES_TEST_TOKEN"
_SOCKETS = ("systemd/private", "bus", "docker.sock", "gnupg/S.gpg-agent", "wayland-0", "tmux-{uid}/default")
# Each takes seconds where the machine is busy: an interpreter's start, a turn, some fifty forks.
_SECONDS = 4 * DEADLINE_SECONDS


@dataclass(frozen=True)
class Person:
    """Who runs a service and its clients."""

    uid: int
    gid: int

    @property
    def line(self) -> list[str]:
        return other_user.as_user(self.uid, self.gid)

    def can_run_this(self) -> bool:
        return other_user.can_run_this(self.uid, self.gid)


ROOT_USER = Person(0, 0)
ORDINARY = Person(NOBODY.pw_uid, NOBODY.pw_gid)


@contextmanager
def folder_of(person: Person) -> Iterator[Path]:
    """Below the world's temporary folder: a test's own cannot be entered by others."""
    folder = Path(tempfile.mkdtemp(prefix="iso"))
    try:
        os.chown(folder, person.uid, person.gid)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def targets_in(folder: Path, person: Person) -> Iterator[dict[str, str]]:
    """Listening sockets of that user; the variables by which they are found."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as made:
        for name in _SOCKETS:
            path = folder / name.format(uid=person.uid)
            path.parent.mkdir(exist_ok=True)
            listener = made.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
        for path in (folder, *folder.rglob("*")):
            os.chown(path, person.uid, person.gid)
        yield {
            "XDG_RUNTIME_DIR": str(folder),
            "SSH_AUTH_SOCK": str(folder / "gnupg/S.gpg-agent"),
            "TMUX_TMPDIR": str(folder),
        }


class OwnedService(Service):
    """The service of that user, with a key file and a secret in its environment."""

    def __init__(self, folder: Path, person: Person, model: FakeModel, **tables: str) -> None:
        home = folder / "home"
        super().__init__(home, with_key(settings_for(model, **tables)))
        (folder / "key").write_text("sk-secret")
        self.person = person
        for path in (home, home / "hermes.toml", folder / "key"):
            os.chown(path, person.uid, person.gid)
            path.chmod(0o700 if path.is_dir() else 0o600)

    def launch(self) -> None:
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = warm.Popen(
                [*self.person.line, *interpreter.command("supervisor", "--home", str(self.home))],
                stdout=log,
                stderr=log,
                env={**interpreter.without_code(os.environ), "HOME": str(self.home.parent), SECRET: "x"},
                start_new_session=True,
            )

    def trial(self, *arguments: str, **variables: str) -> "Trial":
        """`doctor --isolation --json` of the same user, among targets."""
        options = ["-B"] if self.person.line else []
        line = [*self.person.line, sys.executable, *options, "-m", "hermesctl", "--home", str(self.home)]
        with targets_in(Path(tempfile.mkdtemp(dir=self.home.parent)), self.person) as places:
            done = warm.run(
                [*line, "doctor", "--isolation", "--json", *arguments],
                timeout=_SECONDS,
                cwd=ROOT,
                env={**os.environ, **places, **variables},
            )
        assert done.stdout, done.stderr
        return Trial(done.returncode, json.loads(done.stdout))


def with_key(settings: str) -> str:
    """The key file lies beside the home of the service, where nothing else of it does."""
    return settings.replace("[model]", '[model]\napi_key_file = "../key"')


@dataclass(frozen=True)
class Trial:
    """What the command printed."""

    code: int
    report: dict[str, Any]

    def by_verdict(self, verdict: str) -> set[str]:
        return {row["attack"] for row in self.report["attacks"] if row["verdict"] == verdict}

    def faults(self) -> list[str]:
        """What is open and should be held, or could not be tried."""
        rows = self.report["attacks"]
        wrong = [row for row in rows if row["verdict"] == "broken"]
        wrong += [row for row in rows if (row["verdict"], row["promise"]) == ("open", "held")]
        return [f"{row['attack']} is {row['verdict']}: {row['seen']}" for row in wrong]


def documented(column: str) -> dict[str, str]:
    """Of the table in docs/isolation.md: the mark of each attack in that column."""
    found: dict[str, str] = {}
    heads: list[str] = []
    for line in (ROOT / "docs" / "isolation.md").read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if cells[0] == "attack":
            heads = cells
        elif heads and line.startswith("| `"):
            found[cells[0]] = cells[heads.index(column)]
        elif heads and not line.startswith("|"):
            heads = []
    return found
