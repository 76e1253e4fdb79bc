"""A small machine with a systemd of its own, for one run of tests; nothing outside of it changes."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from supervisor.processes.cells.own_cgroup import own_folder
from tests.house_rules import ROOT
from tests.waiting import until

SYSTEMD = Path("/lib/systemd/systemd")
# A boot takes a second or two; a machine with no time to spare takes longer.
BOOT_SECONDS = 40.0
COMMAND_SECONDS = 60.0
_SPACES = ("--pid", "--fork", "--kill-child", "--mount", "--cgroup", "--uts", "--ipc")
_INSIDE = ("--mount", "--pid", "--cgroup", "--uts", "--ipc")


class NoBox(Exception):
    """This machine cannot have one; the text says why."""


class Box:
    """Boots in the constructor. Commands run in it as root; pids given to them are those of the box."""

    def __init__(self) -> None:
        _check_tools()
        self._cgroup = _make_cgroup()
        self._folder = tempfile.mkdtemp(prefix="box")
        line = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self._cgroup)]
        # A box must not outlive the tests, however they end.
        line += ["setpriv", "--pdeathsig", "KILL", "unshare", *_SPACES, "--propagation", "private"]
        line += ["sh", str(Path(__file__).with_name("box.sh")), self._folder, *_elsewhere()]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the box
        self._process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        try:
            self._init = until(self._first_process, BOOT_SECONDS)
            until(self._is_up, BOOT_SECONDS)
        except (AssertionError, NoBox) as fault:
            self.close()
            raise NoBox(f"no systemd can be booted in namespaces here: {fault}") from None

    def run(self, *line: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """A command in the box, to its end, which must be a good one."""
        done = self.try_to(*line, **variables)
        assert done.returncode == 0, (line, done.returncode, done.stdout, done.stderr)
        return done

    def try_to(self, *line: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """The same, whatever its end."""
        variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables}
        enter = ["nsenter", "--target", str(self._init), *_INSIDE, "--", "env", "-i"]
        enter += [f"{name}={value}" for name, value in variables.items()]
        return subprocess.run(
            [*enter, *line], capture_output=True, text=True, timeout=COMMAND_SECONDS, cwd="/"
        )

    def outside(self, path: Path) -> Path:
        """A path of the box as the tests can open it."""
        return Path("/proc", str(self._init), "root", path.relative_to("/"))

    def write(self, path: str, text: str) -> None:
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1"', "sh", path, text)

    def close(self) -> None:
        (self._cgroup / "cgroup.kill").write_text("1")
        self._process.wait()
        self._log.close()
        until(lambda: "populated 0" in (self._cgroup / "cgroup.events").read_text())
        for folder, _, _ in os.walk(self._cgroup, topdown=False):
            os.rmdir(folder)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _first_process(self) -> int:
        pid = self._process.pid
        if self._process.poll() is not None:
            self._log.seek(0)
            raise NoBox(" ".join(self._log.read().split()) or f"status {self._process.returncode}")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # The script becomes systemd under its own pid.
        return int(children[0]) if children and _name(children[0]) == "systemd" else 0

    def _is_up(self) -> bool:
        self._first_process()
        state = self.try_to("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")


def _make_cgroup() -> Path:
    """A tree of its own: two boxes in one would take each other's processes for their own."""
    above = own_folder()
    if above is None:
        raise NoBox("no cgroup2 is mounted here")
    folder = above / f"box-{os.urandom(6).hex()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise NoBox(f"no cgroup can be made in {above}: {error.strerror}") from None
    return folder


def _check_tools() -> None:
    missing = [tool for tool in ("unshare", "nsenter", "setpriv", "pivot_root") if shutil.which(tool) is None]
    if os.geteuid() != 0:
        raise NoBox("booting a systemd in namespaces needs root")
    if missing or not SYSTEMD.exists():
        raise NoBox(f"this machine has no {', '.join(missing) or 'systemd'}")


def _elsewhere() -> list[str]:
    """Of the folders the tests run from, those on another file system than the machine's root."""
    import sys

    root = os.stat("/").st_dev
    needed = {ROOT, Path(sys.prefix), Path(sys.base_prefix), *(Path(entry) for entry in sys.path if entry)}
    return sorted(str(folder) for folder in needed if folder.is_dir() and folder.stat().st_dev != root)


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
