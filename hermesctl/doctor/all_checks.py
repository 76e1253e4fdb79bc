"""All checks in the order in which a person fixes things, and their inputs."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from hermesctl.doctor import (
    database_checks,
    host_checks,
    kernel_checks,
    limit_checks,
    service_checks,
    settings_checks,
    software_checks,
    storage_checks,
)
from hermesctl.doctor.finding import Finding, Surroundings
from hermesctl.errors import CommandError
from hermesctl.show_rows import read
from hermesctl.systemd import installed_unit
from ipc import interpreter
from ipc.messages import Show
from ipc.places import Places, is_listening

# An interpreter's start and up to three trial cells of a second or so each.
_CHECKUP_SECONDS = 60.0

Check = Callable[[Surroundings], "Finding | list[Finding] | None"]
CHECKS: tuple[Check, ...] = (
    software_checks.python,
    software_checks.packages,
    kernel_checks.kernel,
    kernel_checks.namespaces,
    kernel_checks.cgroup,
    kernel_checks.pidfd,
    kernel_checks.subreaper,
    kernel_checks.cell,
    limit_checks.open_files,
    limit_checks.processes,
    limit_checks.pid_numbers,
    limit_checks.namespace_count,
    limit_checks.socket_paths,
    storage_checks.room,
    storage_checks.reserve,
    storage_checks.file_system,
    storage_checks.sync_speed,
    storage_checks.rights,
    host_checks.clock,
    settings_checks.settings,
    settings_checks.model,
    settings_checks.named_models,
    settings_checks.weights,
    settings_checks.speech_endpoint,
    settings_checks.agents,
    host_checks.unit,
    host_checks.lingering,
    service_checks.service,
    service_checks.version,
    service_checks.lock,
    service_checks.journal,
    service_checks.hosts,
    database_checks.database,
    database_checks.database_clock,
    database_checks.standby,
    database_checks.database_access,
    service_checks.leftovers,
)


def examine(places: Places) -> Iterator[Finding]:
    """Yields each finding as soon as it is known."""
    around = Surroundings(places, _checkup(places), _status(places))
    for check in CHECKS:
        found = check(around)
        if isinstance(found, Finding):
            yield found
        elif found:
            yield from found


def _checkup(places: Places) -> dict[str, Any]:
    unit = ["--unit"] if installed_unit(places) is not None else []
    try:
        done = subprocess.run(
            interpreter.command("supervisor.host.preflight", *places.arguments, *unit),
            capture_output=True,
            text=True,
            timeout=_CHECKUP_SECONDS,
            cwd=interpreter.WORKING_DIRECTORY,
            # With the service's environment: one of the checks is whether the variable of a key is set.
            env=interpreter.without_code(os.environ),
        )
        found = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _status(places: Places) -> dict[str, Any] | None:
    if not is_listening(places.control):
        return None
    try:
        rows = read(places, Show("status"))
    except CommandError as error:
        return {"state": "stuck", "hints": [error.fault]}
    return rows[0] if rows else None
