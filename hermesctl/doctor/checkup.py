"""All checks in the order in which a person mends things, and how they come by what they look at."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from hermesctl.doctor import host, kernel, limits, service, settings, software, storage
from hermesctl.doctor.finding import Finding, Surroundings
from hermesctl.errors import CommandError
from hermesctl.rows import read
from hermesctl.systemd import installed_unit
from ipc import interpreter
from ipc.endpoints import Places, is_listening
from ipc.messages import Show

# An interpreter's start and up to three trial cells of a second or so each.
_CHECKUP_SECONDS = 60.0

Check = Callable[[Surroundings], "Finding | list[Finding] | None"]
CHECKS: tuple[Check, ...] = (
    software.python,
    software.packages,
    kernel.kernel,
    kernel.namespaces,
    kernel.cgroup,
    kernel.pidfd,
    kernel.subreaper,
    kernel.cell,
    limits.open_files,
    limits.processes,
    limits.pid_numbers,
    limits.namespace_count,
    limits.socket_paths,
    storage.room,
    storage.reserve,
    storage.file_system,
    storage.sync_speed,
    storage.rights,
    host.clock,
    settings.settings,
    settings.model,
    settings.weights,
    settings.speech_endpoint,
    host.unit,
    host.lingering,
    service.service,
    service.version,
    service.lock,
    service.journal,
    service.leftovers,
)


def examine(places: Places) -> Iterator[Finding]:
    """Each finding as soon as it is there."""
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
            interpreter.command("supervisor.checkup", *places.arguments, *unit),
            capture_output=True,
            text=True,
            timeout=_CHECKUP_SECONDS,
            cwd=interpreter.WORKING_DIRECTORY,
            # As the service would see it: whether the variable of a key is set is one of the questions.
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
