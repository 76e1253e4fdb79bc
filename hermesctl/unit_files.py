"""The unit files for systemd: templates of units/, filled with the numbers and paths of this installation."""

import os
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ipc import interpreter, time_budgets
from ipc.places import SYSTEM_UNIT, Places

SERVICE = "hermes-supervisor.service"
SLICE = "hermes-supervisor.slice"
SYSTEM_USER = "hermes-supervisor"
SYSUSERS = Path("/etc/sysusers.d/hermes-supervisor.conf")
_TEMPLATES = Path(__file__).resolve().parent / "units"


class Scope(StrEnum):
    """The owner of the service."""

    SYSTEM = "system"
    USER = "user"

    @property
    def folder(self) -> Path:
        """The folder of its unit files."""
        if self is Scope.SYSTEM:
            return SYSTEM_UNIT.parent
        # Not by XDG_CONFIG_HOME: a user's manager starts before any shell that could have set it.
        return Path("~/.config/systemd/user").expanduser()

    @property
    def service_file(self) -> Path:
        return self.folder / SERVICE


@dataclass(frozen=True)
class Program:
    """The program to run: an interpreter, the folder of our packages, and every folder it imports from."""

    python: str
    packages: Path
    folders: tuple[Path, ...]

    @property
    def line(self) -> list[str]:
        """`hermesctl`, with nothing imported from the working directory, the environment or a home."""
        return [self.python, *interpreter.FLAGS, str(self.packages / "ipc" / "launch.py"), "hermesctl"]

    @classmethod
    def running(cls) -> "Program":
        """The program of this process."""
        packages = interpreter.PACKAGES
        # `python -m` puts the current folder first; it is no part of the program.
        imported = {Path(entry) for entry in sys.path if entry} - {Path.cwd()}
        folders = {packages, Path(sys.prefix), Path(sys.base_prefix), *imported}
        real = {folder.resolve() for folder in folders if folder.is_dir()}
        outermost = sorted(folder for folder in real if not real & set(folder.parents))
        return cls(sys.executable, packages, tuple(outermost))


def render(scope: Scope, places: Places, program: Program, user: str = SYSTEM_USER) -> dict[str, str]:
    """The text of each unit file by its name."""
    template = (_TEMPLATES / scope / SERVICE).read_text()
    service = template.format(
        # In a command systemd would take a dollar for the name of a variable.
        command=" ".join(_word(word.replace("$", "$$")) for word in program.line),
        user=user,
        protect_home="tmpfs" if user == SYSTEM_USER else "no",
        program_folders=" ".join(_word(str(folder)) for folder in _hidden(program, user)),
        environment=" ".join(_word(f"{name}={value}") for name, value in _environment(places).items()),
        state=places.state,
        stop_seconds=time_budgets.STOP_SECONDS,
        unit_stop_seconds=time_budgets.UNIT_STOP_SECONDS,
        start_seconds=time_budgets.START_SECONDS,
        watchdog_seconds=time_budgets.WATCHDOG_SECONDS,
    )
    return {SERVICE: service, SLICE: (_TEMPLATES / SLICE).read_text()}


def sysusers() -> str:
    """The user of the machine's service, as systemd-sysusers reads it."""
    return (_TEMPLATES / Scope.SYSTEM / SYSUSERS.name).read_text()


def state_of(service_file: Path) -> Path | None:
    """The state folder of the instance that an installed unit runs; None when there is no unit of ours."""
    try:
        lines = service_file.read_text().splitlines()
    except OSError:
        return None
    return next((Path(line.removeprefix("State=")) for line in lines if line.startswith("State=")), None)


def _environment(places: Places) -> dict[str, str]:
    """Variables that a user's service must be given because its manager may not have them."""
    if places.config == places.state:
        return {"HERMES_SUPERVISOR_HOME": str(places.state)}
    return {name: os.environ[name] for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME") if os.environ.get(name)}


def _hidden(program: Program, user: str) -> list[Path]:
    """The program's folders that the unit would hide: in a home folder, or among temporary files."""
    homes = [Path("/home"), Path("/run/user"), Path("~root").expanduser()] if user == SYSTEM_USER else []
    covered = [*homes, Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    return [folder for folder in program.folders if any(hidden in folder.parents for hidden in covered)]


def _word(text: str) -> str:
    """Quotes one word of a unit file, whatever its characters."""
    inner = _escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"' if inner != text or any(character.isspace() for character in text) else text


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
