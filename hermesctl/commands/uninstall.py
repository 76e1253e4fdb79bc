"""`hermesctl uninstall`: stops and removes the units; messages and settings stay."""

import os

import click

from hermesctl import systemd
from hermesctl.command_result import acting, steps, tell
from hermesctl.commands.stop import Telling
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.systemd import Unit
from hermesctl.unit_files import SERVICE, SLICE, SYSTEM_USER, SYSUSERS, Scope, state_of
from ipc.places import SYSTEM, Places

_EXAMPLES = """\b
Examples:
  hermesctl uninstall --user
  sudo hermesctl uninstall --system
  hermesctl uninstall --user --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--user", "scope", flag_value="user", help="The service of this user.")
@click.option("--system", "scope", flag_value="system", help="The service of the whole machine; needs root.")
@acting
@click.pass_obj
def uninstall(places: Places, scope: str | None, form: str) -> None:
    """Stop the systemd service and remove its units; data stays."""
    chosen = Scope(scope or (Scope.SYSTEM if os.geteuid() == 0 else Scope.USER))
    state = state_of(chosen.service_file)
    if state is None:
        raise CommandError(f"no unit is installed in {chosen.folder}", "hermesctl install", Exit.REFUSED)
    systemd.require(chosen)
    at = SYSTEM if chosen is Scope.SYSTEM else places
    unit = Unit(chosen)
    unit.change("stop", Telling(at).say)
    unit.run("disable", SERVICE)
    removed = [chosen.service_file, chosen.folder / SLICE]
    if chosen is Scope.SYSTEM and SYSUSERS.exists():
        removed.append(SYSUSERS)
    unit.ask("stop", SLICE)
    for path in removed:
        path.unlink(missing_ok=True)
    unit.run("daemon-reload")
    unit.ask("reset-failed", SERVICE)
    gone = [str(path) for path in removed]
    sentence = f"stopped and disabled {SERVICE}; removed {', '.join(gone)}"
    tell(form, sentence, unit=SERVICE, scope=chosen, removed=gone, state=str(state), config=str(at.config))
    say = steps(form)
    say(f"left as they are: the data in {state} and the settings in {at.config}")
    if chosen is Scope.SYSTEM:
        say(f"also left: the agents' folder /var/lib/hermes-work and the user {SYSTEM_USER} who owns both")
