"""A service of an ordinary user, started by a test that is root; and servers such a user has running."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ipc import interpreter
from tests import other_user
from tests.service import Service
from tests.waiting import until


def as_user(account: pwd.struct_passwd) -> list[str]:
    return other_user.as_user(account.pw_uid, account.pw_gid)


class ServiceOf(Service):
    """Not started by a fork of the tests' own process: it could not become another user."""

    def __init__(self, account: pwd.struct_passwd, home: Path, settings: str) -> None:
        super().__init__(home, settings)
        self._account = account
        for path in (home, home / "hermes.toml"):
            os.chown(path, account.pw_uid, account.pw_gid)

    def launch(self) -> None:
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*as_user(self._account), *interpreter.command("supervisor", "--home", str(self.home))],
                stdout=log,
                stderr=log,
                env={**interpreter.without_code(os.environ), "HOME": str(self.home)},
                start_new_session=True,
            )


@contextmanager
def folder_of(account: pwd.struct_passwd) -> Iterator[Path]:
    """Below the world's temporary folder: the tests' own cannot be entered by others."""
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def sockets_of(account: pwd.struct_passwd, folder: Path) -> Iterator[dict[str, str]]:
    """Servers of that user, and the address of each; an abstract one begins with @."""
    with ExitStack() as stack:

        def serve(address: str, *line: str) -> str:
            server = subprocess.Popen([*as_user(account), *line], stdout=subprocess.DEVNULL, cwd="/")
            stack.callback(server.wait)
            stack.callback(server.kill)
            until(lambda: reaches(address))
            return address

        found = {}
        if shutil.which("tmux"):
            at = f"{folder}/tmux"
            found["tmux"] = serve(at, "tmux", "-S", at, "-f", "/dev/null", "-D")
        if shutil.which("ssh-agent"):
            at = f"{folder}/ssh-agent"
            found["ssh-agent"] = serve(at, "ssh-agent", "-D", "-a", at)
        if shutil.which("dbus-daemon"):
            at = f"{folder}/bus"
            found["bus"] = serve(at, "dbus-daemon", "--session", "--nofork", f"--address=unix:path={at}")
        # What a container engine and an X server listen on; who listens makes no difference to the kernel.
        for name, at in (("docker", f"{folder}/docker.sock"), ("X11", f"@/tmp/.X11-unix/X{os.getpid()}")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(at.replace("@", "\0"))
            listener.listen()
            if not at.startswith("@"):
                os.chown(at, account.pw_uid, account.pw_gid)
            found[name] = at
        yield found


def reaches(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(address.replace("@", "\0"))
        return True
    return False
