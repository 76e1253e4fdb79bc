"""`hermesctl install`: renders the units, has systemd check them, enables and starts; reports each step."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from hermesctl import systemd
from hermesctl.client import listener_pid
from hermesctl.command_result import acting, steps, tell
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name
from hermesctl.systemd import Unit
from hermesctl.unit_files import SERVICE, SYSTEM_USER, SYSUSERS, Program, Scope, render, sysusers
from hermesctl.waiting import Waiting
from ipc.places import SYSTEM, Places

# Checking two files.
_VERIFY_SECONDS_MAX = 60.0
_EXAMPLES = """\b
Examples:
  hermesctl install --user
  sudo hermesctl install --system
  sudo hermesctl install --system --as alice
  hermesctl install --user --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--user", "scope", flag_value="user", help="A service of this user, with this user's rights.")
@click.option("--system", "scope", flag_value="system", help="A service of the whole machine; needs root.")
@click.option(
    "--as",
    "user",
    **name("USER"),
    help=f"Who the machine's service runs as, instead of a user of its own ({SYSTEM_USER}).",
)
@acting
@click.pass_obj
def install(places: Places, scope: str | None, user: str | None, form: str) -> None:
    """Install the supervisor as a systemd service and start it.

    Without --user or --system root installs for the machine, everybody else for themselves.
    Again, it brings the units up to date and restarts the service.
    """
    chosen = Scope(scope or (Scope.SYSTEM if os.geteuid() == 0 else Scope.USER))
    systemd.require(chosen)
    if user is not None:
        _check_user(chosen, user)
    _check_places(chosen, places)
    unit, at = Unit(chosen), SYSTEM if chosen is Scope.SYSTEM else places
    files = render(chosen, at, Program.running(), user or SYSTEM_USER)
    _refuse_a_second(unit, at)
    _verify(chosen, files)
    say = steps(form)
    if chosen is Scope.SYSTEM:
        _prepare_machine(user or SYSTEM_USER, say)
    for file, text in files.items():
        _write(chosen.folder / file, text)
    written = [str(chosen.folder / file) for file in files]
    say(f"wrote {' and '.join(written)}; systemd-analyze has no complaint")
    unit.run("daemon-reload")
    unit.run("enable", SERVICE)
    say(f"enabled {SERVICE}: it starts with {'the machine' if chosen is Scope.SYSTEM else 'your sessions'}")
    waiting = Waiting()
    unit.change("restart", lambda: waiting.say("waiting for the supervisor to be ready"))
    pid = int(unit.pid())
    tell(form, f"started, pid {pid}", unit=SERVICE, scope=chosen, files=written, pid=pid, state=str(at.state))
    _tell_more(chosen, at, say)


def _check_places(scope: Scope, places: Places) -> None:
    if scope is Scope.SYSTEM and places.config == places.state:
        raise CommandError("the machine's service has its own folders", "leave --home out", Exit.USAGE)
    if scope is Scope.USER and places == SYSTEM:
        raise CommandError(
            "for root hermesctl means the machine's service, which is installed",
            "hermesctl install --system, or --home DIR for another instance",
            Exit.REFUSED,
        )


def _check_user(scope: Scope, user: str) -> None:
    import pwd

    if scope is Scope.USER:
        raise CommandError("--as is for --system", "hermesctl install --system --as USER", Exit.USAGE)
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise CommandError(f"there is no user {user}", "name one of /etc/passwd", Exit.USAGE) from None


def _refuse_a_second(unit: Unit, places: Places) -> None:
    """A supervisor outside of systemd holds the journal; the unit could not start beside it."""
    pid = listener_pid(places)
    if pid is not None and unit.pid() != str(pid):
        raise CommandError(
            f"a supervisor runs already (pid {pid})", "hermesctl stop, then this again", Exit.LOCKED
        )


def _verify(scope: Scope, files: dict[str, str]) -> None:
    """Runs before anything is changed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        line = ["systemd-analyze", f"--{scope}", "verify", *(str(Path(folder, name)) for name in files)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=_VERIFY_SECONDS_MAX)
    complaints = [line for line in done.stderr.splitlines() if any(name in line for name in files)]
    if done.returncode != 0 or complaints:
        words = "".join(f"\n    {line}" for line in complaints or done.stderr.splitlines())
        raise CommandError(
            f"systemd-analyze does not accept the units{words}",
            "nothing was changed; systemd 250 or later is needed",
        )


def _prepare_machine(user: str, say: Callable[[str], None]) -> None:
    """Makes the service's user, and the folders that systemd does not make as needed."""
    import pwd

    if user == SYSTEM_USER:
        _write(SYSUSERS, sysusers())
        done = subprocess.run(["systemd-sysusers", str(SYSUSERS)], capture_output=True, text=True)
        if done.returncode != 0:
            words = " ".join(done.stderr.split())
            raise CommandError(f"the user {user} could not be made: {words}", "see systemd-sysusers(8)")
    keys = SYSTEM.keys
    for folder, mode, group in ((SYSTEM.config, 0o750, pwd.getpwnam(user).pw_gid), (keys, 0o700, 0)):
        folder.mkdir(exist_ok=True)
        os.chown(folder, 0, group)
        folder.chmod(mode)
    say(f"it runs as {user}; settings are read from {SYSTEM.settings_file}, keys from {keys}")


def _write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: systemd may read it at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(path)


def _tell_more(scope: Scope, places: Places, say: Callable[[str], None]) -> None:
    say(f"its data is in {places.state}; hermesctl status and hermesctl logs -f show how it does")
    if scope is Scope.USER and not systemd.lingers():
        say("it ends with your last session; to keep it running: loginctl enable-linger")
