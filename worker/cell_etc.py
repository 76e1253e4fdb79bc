"""The /etc of a cell: an allow-list of the files that programs need, and the users that exist inside.

Files are copied, so that `refresh` can apply a change of the host's name servers while cells run; folders are
mounted. Only files that every user of the host may read are copied: a supervisor may run as root.
"""

import glob
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

_FILES = (
    "bash.bashrc",
    "bashrc",
    "ca-certificates.conf",
    "debian_version",
    "default/locale",
    "gai.conf",
    "gitattributes",
    "gitconfig",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "manpath.config",
    "mime.types",
    "nanorc",
    "networks",
    "npmrc",
    "nsswitch.conf",
    "os-release",
    "papersize",
    "pip.conf",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    "ssh/ssh_config",
    "ssh/ssh_known_hosts",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "timezone",
    "wgetrc",
)
_FOLDERS = (
    "ImageMagick-*",
    "R",
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "groff",
    "java*",
    "ld.so.conf.d",
    "maven*",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "profile.d",
    "python3*",
    "ssh/ssh_config.d",
    "ssl/certs",
    "terminfo",
    "texmf",
    "vim",
    "xdg",
    "xml",
)
# More than any of them has; a larger one is a different kind of file.
_FILE_BYTES_MAX = 1024 * 1024
# The id that the kernel shows for owners outside of the namespace.
_OVERFLOW = 65534
# The system settings of git where agents run as another user.
GIT_OF_AGENTS = "/etc/gitconfig-of-agents"
_TRUST = b"[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n"


def folders() -> list[str]:
    """The host's folders that a cell sees, as absolute paths."""
    found = [path for pattern in _FOLDERS for path in glob.glob(f"/etc/{pattern}")]
    return [path for path in found if _is_public(os.stat(path), stat.S_ISDIR)]


def write_users(folder: int, user: str, uid: int, gid: int, home: str) -> None:
    """passwd and group below the descriptor: root, the agent's user and nobody."""
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    none = "/usr/sbin/nologin"
    passwd = {0: f"root:x:0:0:root:/:{none}", _OVERFLOW: f"nobody:x:{_OVERFLOW}:{_OVERFLOW}:nobody:/:{none}"}
    group = {0: "root:x:0:", _OVERFLOW: f"nogroup:x:{_OVERFLOW}:"}
    passwd[uid] = f"{user}:x:{uid}:{gid}::{home}:{shell}"
    group[gid] = f"{user}:x:{gid}:"
    _write(folder, "passwd", "".join(f"{line}\n" for line in passwd.values()).encode())
    _write(folder, "group", "".join(f"{line}\n" for line in group.values()).encode())


def trust_repositories(folder: int) -> None:
    """For agents of another user, because visible repositories belong to a different user.

    Git would refuse to open those: their hooks and settings might run code, which here runs in the cell
    either way.
    """
    _write(folder, os.path.basename(GIT_OF_AGENTS), _TRUST)


class Copies:
    """The copied files, and the state of the originals when they were copied."""

    def __init__(self, folder: int) -> None:
        """`folder` is a descriptor of the copy through which it can be written; it is kept."""
        self._folder = folder
        self._seen: dict[str, tuple[int, int, int]] = {}

    def refresh(self) -> None:
        """Copies the files that have changed since the last time; every cell sees them at once."""
        for name, found in _present():
            now = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._seen.get(name) != now:
                self._seen[name] = now
                with suppress(OSError), open(f"/etc/{name}", "rb") as file:
                    _write(self._folder, name, file.read(_FILE_BYTES_MAX))

    def close(self) -> None:
        os.close(self._folder)


def _present() -> Iterator[tuple[str, os.stat_result]]:
    for name in _FILES:
        with suppress(OSError):
            found = os.stat(f"/etc/{name}")
            if _is_public(found, stat.S_ISREG) and found.st_size <= _FILE_BYTES_MAX:
                yield name, found


def _is_public(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(found.st_mode) and bool(found.st_mode & stat.S_IROTH)


def _write(folder: int, name: str, content: bytes) -> None:
    """Replaces the file in one step for readers, readable for all whatever the umask."""
    parents = name.split("/")[:-1]
    for depth in range(len(parents)):
        with suppress(FileExistsError):
            os.mkdir("/".join(parents[: depth + 1]), 0o755, dir_fd=folder)
    fresh = f"{name}.new"
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        os.fchmod(file, 0o644)
        os.write(file, content)
    finally:
        os.close(file)
    os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
