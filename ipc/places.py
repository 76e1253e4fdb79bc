"""The folders of one instance: config, state and sockets; each is 0700 and owned by its user."""

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
    # The options with which another process finds the same instance, from any working directory.
    arguments: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def settings_file(self) -> Path:
        return self.config / "hermes.toml"

    @property
    def keys(self) -> Path:
        """Of the system service: the folder of credentials that systemd passes."""
        return self.config / "keys"

    @property
    def journal(self) -> Path:
        return self.state / "journal.db"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def reserve(self) -> Path:
        """Reserved disk space for records that must be written when the disk is full."""
        return self.state / "reserve"

    @property
    def models(self) -> Path:
        return self.state / "models"

    @property
    def clips(self) -> Path:
        return self.state / "clips"

    @property
    def workspaces(self) -> Path:
        """A folder for each session, which is its agent's home folder."""
        return self.state / "workspaces"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def control(self) -> str:
        return str(self.runtime / "control.sock")

    @property
    def gateway(self) -> str:
        """The control socket of the gateway, which takes fewer requests."""
        return str(self.runtime / "gateway.sock")

    @property
    def tokens(self) -> Path:
        """The gateway's tokens; the supervisor never opens it."""
        return self.state / "tokens.db"

    @property
    def token(self) -> Path:
        """The secret of the token that the gateway makes at its first start."""
        return self.state / "token"

    @property
    def services(self) -> str:
        return str(self.runtime / "services.sock")

    @property
    def processes(self) -> Path:
        """The record of processes that must not outlive the service."""
        return self.runtime / "processes"


# The folders of the system service, if its unit is installed.
SYSTEM = Places(
    Path("/etc/hermes-supervisor"),
    Path("/var/lib/hermes-supervisor"),
    Path("/run/hermes-supervisor"),
    arguments=("--system",),
)
SYSTEM_UNIT = Path("/etc/systemd/system/hermes-supervisor.service")


def find_places(home: str | None) -> Places:
    """`home`, else HERMES_SUPERVISOR_HOME, puts all under one folder; otherwise the XDG folders.

    For root, and for the user of the system service, the result is the system service where it is installed.
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
    """Adds the options that select an instance; `Places.arguments` has their values."""
    parser.add_argument("--home", metavar="DIR", help="config, state and sockets of the instance are in DIR")
    parser.add_argument("--system", action="store_true", help="the service of the whole machine")


def chosen_places(options: "argparse.Namespace") -> Places:
    return SYSTEM if options.system else find_places(options.home)


def _xdg(name: str) -> Path | None:
    """Ignores a relative path, as the specification says: it means another folder to each process."""
    value = os.environ.get(name, "")
    return Path(value) if os.path.isabs(value) else None


def credentials() -> tuple[Path, ...]:
    """The folder of this service's credentials from systemd. Its user can read them, so cells hide it."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return (Path(folder),) if folder else ()


def make_private(folder: Path) -> None:
    """Makes the folder 0700, or refuses one of another user."""
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
    """Removes a substitute runtime folder among temporary files; leaves any other folder alone."""
    if runtime.parent == Path(tempfile.gettempdir()) and runtime.name.startswith(_stand_in()):
        shutil.rmtree(runtime, ignore_errors=True)


def is_listening(path: str) -> bool:
    """True when a process accepts connections there (a socket file may outlive its process)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _refuse_undecodable(folder: Path) -> None:
    """Refuses such a path: it is sent to clients and workers in frames that carry UTF-8 only."""
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
    """Returns the folder itself, or a short private substitute where its path is too long for a socket."""
    if len(os.fsencode(runtime)) <= _RUNTIME_PATH_MAX:
        return runtime
    name = hashlib.blake2b(os.fsencode(runtime), digest_size=6).hexdigest()
    return Path(tempfile.gettempdir()) / f"{_stand_in()}{name}"


def _stand_in() -> str:
    """The prefix of this user's substitute folders."""
    return f"hermes-supervisor-{os.geteuid()}-"
