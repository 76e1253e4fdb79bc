"""Uses systemd through its own commands, each with a time limit, and explains every refusal."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.unit_files import SERVICE, Scope, state_of
from ipc.places import Places
from ipc.time_budgets import START_SECONDS, UNIT_STOP_SECONDS

if TYPE_CHECKING:
    import subprocess

# systemd keeps its own deadlines for a start and a stop; this is for a systemd that does not.
_SYSTEMCTL_SECONDS_MAX = START_SECONDS + UNIT_STOP_SECONDS + 10.0
_LOOK_SECONDS = 0.25
# As many as fit a screen.
_LAST_LINES = 12


@dataclass(frozen=True)
class Unit:
    """The service as systemd sees it, of the machine or of this user."""

    scope: Scope

    def run(self, *words: str) -> None:
        """Runs a systemctl command; a refusal ends the command."""
        done = self.ask(*words)
        if done.returncode != 0:
            raise CommandError(
                f"systemctl {' '.join(words)} failed: {_sentence(done.stderr)}", self._hint(), Exit.BUG
            )

    def ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        import subprocess

        return subprocess.run(
            self._line(*words), capture_output=True, text=True, timeout=_SYSTEMCTL_SECONDS_MAX
        )

    def change(self, verb: str, meanwhile: Callable[[], None]) -> None:
        """Start, stop or restart; `meanwhile` is called at intervals until systemd is done."""
        import subprocess

        if verb != "stop":
            # A person who starts the service has fixed something: earlier crashes no longer count.
            self.ask("reset-failed", SERVICE)
        began = time.time()
        job = subprocess.Popen(self._line(verb, SERVICE), stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + _SYSTEMCTL_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                _, complaint = job.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                meanwhile()
                continue
            if job.returncode != 0:
                raise self._failed(verb, complaint, began)
            return
        job.kill()
        job.communicate()
        raise self._failed(verb, f"systemd did not {verb} it within {_SYSTEMCTL_SECONDS_MAX:g} s", began)

    def properties(self, *names: str) -> dict[str, str]:
        shown = self.ask("show", SERVICE, *(f"--property={name}" for name in names)).stdout
        pairs = (line.partition("=") for line in shown.splitlines())
        return {name: value for name, _, value in pairs}

    def pid(self) -> str:
        """The pid of the supervisor itself; "0" when it does not run."""
        return self.properties("MainPID").get("MainPID", "0")

    def journal(self, *words: str) -> list[str]:
        """The command line that reads the unit's log."""
        # Not --user: where journald keeps one journal for all, that would find nothing.
        option = "--user-unit" if self.scope is Scope.USER else "--unit"
        return ["journalctl", f"{option}={SERVICE}", *words]

    def sentence(self) -> str:
        """The state according to systemd, for `status`."""
        names = ("ActiveState", "SubState", "Result", "NRestarts", "UnitFileState", "StatusText")
        found = self.properties(*names)
        words = [f"{SERVICE} of the {'machine' if self.scope is Scope.SYSTEM else 'user'}"]
        words.append(f"{found.get('ActiveState', 'unknown')} ({found.get('SubState', '')})")
        words.append(found.get("UnitFileState") or "not enabled")
        if found.get("Result", "success") != "success":
            words.append(f"last result {found['Result']}")
        if found.get("NRestarts", "0") != "0":
            words.append(f"restarted {found['NRestarts']} times")
        return ", ".join(words)

    def _line(self, *words: str) -> list[str]:
        return ["systemctl", f"--{self.scope}", "--no-ask-password", *words]

    def _failed(self, verb: str, complaint: str, since: float) -> CommandError:
        """Uses the supervisor's own exit code where it chose one, so that 75 and 78 reach scripts."""
        import subprocess

        status = self.properties("ExecMainStatus").get("ExecMainStatus", "")
        code = int(status) if status in (str(int(Exit.LOCKED)), str(int(Exit.SETTINGS))) else Exit.BUG
        # With both a beginning and a number of lines, journalctl shows the first ones.
        words = ("--no-pager", "--output=cat", f"--since=@{int(since)}")
        said = subprocess.run(self.journal(*words), capture_output=True, text=True, timeout=30).stdout
        lines = [line for line in said.splitlines() if line.strip()]
        last = "".join(f"\n    {line}" for line in lines[-_LAST_LINES:])
        return CommandError(f"systemd could not {verb} it: {_sentence(complaint)}{last}", self._hint(), code)

    def _hint(self) -> str:
        if self.scope is Scope.SYSTEM and os.geteuid() != 0:
            return "it is the machine's service: use sudo"
        return "hermesctl logs shows more"


def installed_unit(places: Places) -> Unit | None:
    """The unit that runs the instance at these places, if systemd runs this machine and has one."""
    if not is_there():
        return None
    for scope in Scope:
        if state_of(scope.service_file) == places.state:
            return Unit(scope)
    return None


def is_there() -> bool:
    """True when systemd is this machine's init: see sd_booted(3)."""
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


def require(scope: Scope) -> None:
    """Ends the command with a hint where units of this scope are not possible."""
    if not is_there():
        raise CommandError(
            "systemd does not run this machine",
            "hermesctl start runs the supervisor in the background without it",
            Exit.REFUSED,
        )
    if scope is Scope.SYSTEM and os.geteuid() != 0:
        raise CommandError(
            "only root can install a service of the whole machine",
            "sudo hermesctl install --system, or hermesctl install --user for yourself",
            Exit.REFUSED,
        )
    if scope is Scope.USER and Unit(scope).ask("show-environment").returncode != 0:
        raise CommandError(
            "systemd runs no services for this user now",
            f"loginctl enable-linger {_user()}, then log in again (XDG_RUNTIME_DIR must be set)",
            Exit.REFUSED,
        )


def lingers() -> bool:
    """True when this user's services outlast the user's last session."""
    return Path("/var/lib/systemd/linger", _user()).exists()


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _sentence(text: str) -> str:
    return " ".join(text.split()) or "it gave no reason"
