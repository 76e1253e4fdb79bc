"""Where everything lies: config, state and sockets of one instance; folders are 0700 and ours alone."""

import hashlib
import os
import shutil
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ipc.errors import PlaceError

if TYPE_CHECKING:
    import argparse

# sun_path holds 108 bytes with its terminator; the longest socket name here needs 16 of them.
_RUNTIME_PATH_MAX = 80


@dataclass(frozen=True)
class Places:
    """The folders of one instance."""

    config: Path
    state: Path
    runtime: Path
    # How another process of ours is told of the same instance, from any working directory.
    arguments: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def settings_file(self) -> Path:
        return self.config / "hermes.toml"

    @property
    def keys(self) -> Path:
        """Of the machine's service: what systemd hands over as credentials."""
        return self.config / "keys"

    @property
    def journal(self) -> Path:
        return self.state / "journal.db"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def reserve(self) -> Path:
        """Room on the disk for what must be written when there is none."""
        return self.state / "reserve"

    @property
    def models(self) -> Path:
        return self.state / "models"

    @property
    def clips(self) -> Path:
        return self.state / "clips"

    @property
    def workspaces(self) -> Path:
        """A folder for each session, which its agent finds as its home."""
        return self.state / "workspaces"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def control(self) -> str:
        return str(self.runtime / "control.sock")

    @property
    def services(self) -> str:
        return str(self.runtime / "services.sock")


# Where the service of the whole machine lies, if its unit is installed.
SYSTEM = Places(
    Path("/etc/hermes-supervisor"),
    Path("/var/lib/hermes-supervisor"),
    Path("/run/hermes-supervisor"),
    arguments=("--system",),
)
SYSTEM_UNIT = Path("/etc/systemd/system/hermes-supervisor.service")


def find_places(home: str | None) -> Places:
    """`home`, else HERMES_SUPERVISOR_HOME, puts all under one folder; otherwise the XDG folders.

    Root, and the user it runs as, mean the service of the whole machine where that is installed.
    """
    chosen = home or os.environ.get("HERMES_SUPERVISOR_HOME")
    if chosen:
        root = Path(chosen).expanduser().resolve()
        _refuse_undecodable(root)
        return Places(root, root, _short(root / "run"), arguments=("--home", str(root)))
    if SYSTEM_UNIT.exists() and os.geteuid() in (0, _owner(SYSTEM.state)):
        return SYSTEM
    own = Path("~").expanduser()
    config = (_xdg("XDG_CONFIG_HOME") or own / ".config") / "hermes-supervisor"
    state = (_xdg("XDG_STATE_HOME") or own / ".local" / "state") / "hermes-supervisor"
    runtime = _xdg("XDG_RUNTIME_DIR")
    run = runtime / "hermes-supervisor" if runtime else state / "run"
    for folder in (config, state, run):
        _refuse_undecodable(folder)
    return Places(config, state, _short(run))


def add_options(parser: "argparse.ArgumentParser") -> None:
    """The options of a program of ours that say which instance it is for; `Places.arguments` are such."""
    parser.add_argument("--home", metavar="DIR", help="config, state and sockets of the instance are in DIR")
    parser.add_argument("--system", action="store_true", help="the service of the whole machine")


def chosen_places(options: "argparse.Namespace") -> Places:
    return SYSTEM if options.system else find_places(options.home)


def _xdg(name: str) -> Path | None:
    """A relative path is ignored, as the specification says: it means another folder to each process."""
    value = os.environ.get(name, "")
    return Path(value) if os.path.isabs(value) else None


def credentials() -> tuple[Path, ...]:
    """Where systemd has put the keys of this service. Who runs as its user could read them: cells hide it."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return (Path(folder),) if folder else ()


def make_private(folder: Path) -> None:
    """Makes the folder 0700, or refuses one that belongs to somebody else."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise PlaceError(f"{folder} belongs to another user", "choose another folder with --home")
        folder.chmod(0o700)
    except OSError as error:
        raise PlaceError(
            f"cannot use {folder}: {error.strerror}", "choose another folder with --home"
        ) from None


def remove_stand_in(runtime: Path) -> None:
    """Removes a runtime folder that stands in for another among temporary files; leaves any other alone."""
    if runtime.parent == Path(tempfile.gettempdir()) and runtime.name.startswith(_stand_in()):
        shutil.rmtree(runtime, ignore_errors=True)


def is_listening(path: str) -> bool:
    """Whether a process accepts connections there (a socket file may outlive its process)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _refuse_undecodable(folder: Path) -> None:
    """The path is told to clients and to workers, in frames that carry UTF-8 only."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(folder).decode(errors="replace")
        raise PlaceError(f"{shown} is not UTF-8 text", "choose another folder with --home") from None


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def _short(runtime: Path) -> Path:
    """The folder itself, or a short private stand-in where its path is too long for a socket."""
    if len(os.fsencode(runtime)) <= _RUNTIME_PATH_MAX:
        return runtime
    name = hashlib.blake2b(os.fsencode(runtime), digest_size=6).hexdigest()
    return Path(tempfile.gettempdir()) / f"{_stand_in()}{name}"


def _stand_in() -> str:
    """How the names of stand-ins of this user begin."""
    return f"hermes-supervisor-{os.geteuid()}-"
