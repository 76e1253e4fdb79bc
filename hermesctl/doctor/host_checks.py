"""The host of the service: its clock, systemd's units, and whether they outlive a login."""

import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good

_UNIT = "hermes-supervisor.service"
_COMMAND_SECONDS = 5.0
# Clocks are adjusted by this much every day.
_BEHIND_SECONDS_MAX = 5.0


def clock(around: Surroundings) -> Finding:
    try:
        behind = around.places.journal.stat().st_mtime - time.time()
    except OSError:
        behind = 0.0
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    if behind > _BEHIND_SECONDS_MAX:
        return bad(
            "clock", f"{now} is {behind:.0f} s behind the journal", "set it right, then restart the service"
        )
    synchronised = _said("timedatectl", "show", "--property=NTPSynchronized", "--value")
    if synchronised == "no":
        return care("clock", f"{now}, not synchronised", "sudo timedatectl set-ntp true")
    return good("clock", f"{now}, synchronised" if synchronised == "yes" else now)


def unit(around: Surroundings) -> Finding:
    found = _unit_file()
    if found is None:
        return good("unit", "not installed; hermesctl install makes it start with the host")
    scope = _scope(found)
    started = _started_by(found)
    if started and not Path(started).exists():
        fact = f"{found} starts {started}, which is gone"
        return bad("unit", fact, f"hermesctl install --{scope}")
    enabled = _said("systemctl", f"--{scope}", "is-enabled", _UNIT)
    if enabled not in ("enabled", ""):
        return care("unit", f"{found} is {enabled}", f"systemctl --{scope} enable {_UNIT}")
    return good("unit", f"{found}" + (f", {enabled}" if enabled else ""))


def lingering(around: Surroundings) -> Finding | None:
    """Only for a unit of this user: without lingering it ends with the last login."""
    found = _unit_file()
    if found is None or _scope(found) != "user":
        return None
    user = pwd.getpwuid(os.geteuid()).pw_name
    if _said("loginctl", "show-user", user, "--property=Linger", "--value") == "yes":
        return good("lingering", f"the service goes on when {user} logs out")
    if Path("/var/lib/systemd/linger", user).exists():
        return good("lingering", f"the service goes on when {user} logs out")
    return care("lingering", f"the service ends when {user} logs out", f"sudo loginctl enable-linger {user}")


def _unit_file() -> Path | None:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    places = (config / "systemd/user", Path("/etc/systemd/user"), Path("/etc/systemd/system"))
    return next((place / _UNIT for place in places if (place / _UNIT).exists()), None)


def _scope(unit: Path) -> str:
    return unit.parent.name


def _started_by(unit: Path) -> str:
    """The program of ExecStart."""
    for line in unit.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "ExecStart":
            return value.strip().lstrip("-@:+!").split()[0].strip('"')
    return ""


def _said(*line: str) -> str:
    """Returns the output of a command; empty when it is missing, fails or hangs."""
    if shutil.which(line[0]) is None:
        return ""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip()
