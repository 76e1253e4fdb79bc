"""Hints about the key of a model's server: a variable exported in a shell does not reach a systemd unit."""

import os
from pathlib import Path

from ipc.places import SYSTEM

# systemd sets it to the pid of the process that it starts, so a process can tell that it was no shell.
_STARTED_BY_SYSTEMD = "SYSTEMD_EXEC_PID"
_CREDENTIAL = "$CREDENTIALS_DIRECTORY/key_"


def missing_variable(settings_file: Path | None, variable: str) -> str:
    """Return the hint for `api_key_env` when its variable is not set."""
    if _is_of_the_machine(settings_file):
        entry = f'api_key_file = "{_CREDENTIAL}openai"'
        return f"put the key into {SYSTEM.keys / 'openai'} and write {entry} instead; then hermesctl restart"
    if os.environ.get(_STARTED_BY_SYSTEMD) == str(os.getpid()):
        return 'put the key into a file of yours and write api_key_file = "~/.secrets/openai" instead'
    return f"run `export {variable}=…` before the start, or use api_key_file"


def pretend_unit() -> None:
    """From here on hints are those for a systemd service, however this process was started."""
    os.environ[_STARTED_BY_SYSTEMD] = str(os.getpid())


def handed_over_from(settings_file: Path | None, api_key_file: str) -> Path | None:
    """Return the file that systemd passes under this name; None when the name is no such credential."""
    if _is_of_the_machine(settings_file) and api_key_file.startswith(_CREDENTIAL):
        return SYSTEM.keys / api_key_file.removeprefix(_CREDENTIAL)
    return None


def _is_of_the_machine(settings_file: Path | None) -> bool:
    return settings_file is not None and settings_file.parent == SYSTEM.config
