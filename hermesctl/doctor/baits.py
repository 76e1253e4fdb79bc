"""The targets of a trial's attacks: folders of the instance, sockets of this host, and baits.

A bait is a socket or file that is made for one trial, so that an attack has a target on every host.
"""

import os
import pwd
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from hermesctl.doctor.cell_look import uid_of
from ipc.isolation import Running, Spot, Targets
from ipc.places import Places

_PATHS_MAX = 64
_FOUND_MAX = 60


@contextmanager
def laid(
    places: Places, pid: int, workers: Iterable[Mapping[str, Any]], services: Iterable[Mapping[str, Any]]
) -> Iterator[Targets]:
    """The baits exist as long as the context lasts. `pid` is the supervisor's."""
    found = uid_of(pid)
    uid = os.getuid() if found is None else found
    runtime = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"]
    addresses = (row.get("address") for row in services if row.get("service") == "model")
    others = [int(row["pid"]) for row in workers if row.get("pid")]
    with ExitStack() as made:
        folder = made.enter_context(tempfile.TemporaryDirectory(prefix="hermes-isolation-"))
        # The user of the service must be able to reach them, or a refusal proves nothing.
        os.chmod(folder, 0o755)
        file = Path(folder, "file")
        file.write_text("nothing\n")
        named, abstract, port = _listeners(made, folder)
        yield Targets(
            systemd=_existing("/run/systemd/private", *_in(runtime, "systemd/private")),
            buses=_existing(*_buses(), "/run/dbus/system_bus_socket", *_in(runtime, "bus")),
            containers=_existing(*_engines(), *_in(runtime, "podman/podman.sock", "docker.sock")),
            key_agents=_existing(
                os.environ.get("SSH_AUTH_SOCK", ""), *_in(runtime, "gnupg/S.gpg-agent", "keyring/ssh")
            ),
            displays=_existing(*_displays(runtime)),
            terminals=_existing(*_terminals(uid)),
            unix=(named,),
            abstract=abstract,
            port=port,
            runtime=str(places.runtime),
            control=(places.control, places.services),
            model=str(next(addresses, "") or ""),
            outside=tuple(_running(each) for each in (pid, os.getpid(), *others[:_FOUND_MAX])),
            state=_spots(places.journal, places.state / "token", places.lock),
            settings=_spots(places.settings_file),
            workspaces=_spots(places.workspaces),
            parents=_spots(*_parents(places)),
            home=_spots(_home(uid)),
            host_file=_spots(file),
        )


def _listeners(made: ExitStack, folder: str) -> tuple[str, str, int]:
    """A socket in the folder, an abstract one, and a port; the kernel accepts their connections."""
    path, abstract = f"{folder}/socket", f"hermes-isolation-{os.urandom(8).hex()}"
    by_path, by_name, by_port = (
        made.enter_context(socket.socket(family))
        for family in (socket.AF_UNIX, socket.AF_UNIX, socket.AF_INET)
    )
    by_path.bind(path)
    os.chmod(path, 0o777)
    by_name.bind(f"\0{abstract}")
    by_port.bind(("127.0.0.1", 0))
    for listener in (by_path, by_name, by_port):
        listener.listen()
    return path, abstract, by_port.getsockname()[1]


def _existing(*paths: str) -> tuple[str, ...]:
    """A socket that does not exist on this host is not tried."""
    found = dict.fromkeys(path for path in paths if path and os.path.exists(path))
    return tuple(found)[:_PATHS_MAX]


def _in(folders: list[str], *names: str) -> list[str]:
    return [f"{folder}/{name}" for folder in folders if folder for name in names]


def _buses() -> list[str]:
    """unix:path=/run/user/1000/bus,guid=…;…"""
    listed = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "").replace(";", ",").split(",")
    return [each.removeprefix("unix:path=") for each in listed if each.startswith("unix:path=")]


def _engines() -> list[str]:
    chosen = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    return [chosen, "/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock",
            "/run/containerd/containerd.sock"]  # fmt: skip


def _displays(runtime: list[str]) -> list[str]:
    return [*glob("/tmp/.X11-unix/X*"), *(path for each in _in(runtime, "wayland-*") for path in glob(each))]


def _terminals(uid: int) -> list[str]:
    folders = {os.environ.get("TMUX_TMPDIR") or "/tmp", "/tmp"}
    users = {uid, os.getuid()}
    return [path for folder in folders for user in users for path in glob(f"{folder}/tmux-{user}/*")]


def _running(pid: int) -> Running:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return Running(pid, 0)
    return Running(pid, int(text[text.rindex(")") + 2 :].split()[19]))


def _spots(*paths: Path) -> tuple[Spot, ...]:
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append(Spot(str(path), status.st_dev, status.st_ino))
    return tuple(found)


def _parents(places: Places) -> list[Path]:
    """Every folder above settings and state, except the root, to which only root can write."""
    above = {parent for place in (places.config, places.state) for parent in place.parents}
    return sorted(above - {Path("/")})


def _home(uid: int) -> Path:
    try:
        return Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        return Path("/nonexistent")
