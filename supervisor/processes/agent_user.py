"""The user and group that the processes of cells belong to.

An ordinary user's agents run as that user: another uid could neither use the user's folders nor leave files
that the user can open, and the view of a cell is what keeps it from the rest. Root's agents must not be root,
so they get a uid and a gid that nothing else has, chosen by the same steps each:

    1. in root's ranges of /etc/subuid and /etc/subgid;
    2. in a range that no allocator in use hands out, see _UNCLAIMED;
    3. in what the user namespace of this container maps;
    4. `nobody`, which services share;
    5. root's own, without any capability: where the container maps nothing else or root may not change users,
       and in a cell without a view where another user cannot read the program that agents run.

Within a range a digest of the state folder decides, so that an instance keeps its uid across restarts, and
two instances hardly ever share one. Numbers that the user namespace around this process does not map are left
out of every range, and a number that has an account is skipped.

All cells of an instance have the same uid: workspaces outlive cells, and cells are made before their session
is known. Per-user limits of the kernel still count for each cell alone, since each has a user namespace of
its own; docs/decisions/0023 names the exceptions.
"""

import grp
import hashlib
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ipc.service_messages import User
from supervisor.processes.cells import BEST

# 0x7F000000 and up: above what systemd hands to containers and what directory services map accounts to,
# below 2^31, from where on programs take a uid for a negative number.
_UNCLAIMED = range(2130706432, 2130706432 + 65536)
# System and ordinary accounts of a container end below; 65535 means "no user" in older interfaces.
_MAPPED_FIRST, _MAPPED_LAST = 60000, 65533
_ACCOUNTS_FIRST = 1000
_NOBODY = 65534
# Numbers tried in one range.
_PROBES_MAX = 1000
_ROOT = 0
_FOR_ALL = stat.S_IROTH | stat.S_IXOTH
# CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, SETFCAP: to give files to another user and manage them,
# to end its processes, to become it, and to map root into a user namespace.
_NEEDED = frozenset({0, 1, 3, 5, 6, 7, 31})
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class AgentUser:
    """`other` is None where agents run as the supervisor's own user; `caveat` says what that costs."""

    other: User | None = None
    caveat: str = ""

    @property
    def sentence(self) -> str:
        """Return a sentence for `hermesctl status` and `doctor`."""
        own = f"run as uid {os.geteuid()}, the supervisor's own"
        who = f"run as uid {self.other.uid}, which is not the supervisor's" if self.other else own
        return "; ".join(filter(None, [who, self.caveat]))

    def give(self, folder: Path) -> None:
        """Change the owner of a workspace and its content to the agents, unless it is theirs already.

        The owner of symbolic links is changed too, and they are not followed. The folder itself comes last:
        until then it is not the agents', and the next call does the rest.
        """
        if self.other is None or _belongs_to(os.lstat(folder), self.other):
            return
        uid, gid = self.other.uid, self.other.gid
        for _, folders, files, above in os.fwalk(folder, follow_symlinks=False):
            for name in (*folders, *files):
                with suppress(FileNotFoundError):
                    os.chown(name, uid, gid, dir_fd=above, follow_symlinks=False)
        os.chown(folder, uid, gid, follow_symlinks=False)


OWN = AgentUser()


@cache
def choose(state: Path, kind: str) -> AgentUser:
    """Choose for the instance with this state folder, in cells of this kind ("auto" is the best one)."""
    if os.geteuid() != _ROOT:
        return OWN
    if _NEEDED - _capabilities():
        return AgentUser(caveat=_as_root("this container withholds the capabilities to change users"))
    closed = _closed_folder() if kind not in ("auto", BEST) else None
    if closed is not None:
        return AgentUser(caveat=_as_root(f"another user cannot read the program, run `chmod a+rx {closed}`"))
    uid = _free("uid", state, _has_account)
    gid = _free("gid", state, _has_group)
    if uid is None or gid is None:
        return AgentUser(caveat=_as_root("no other user is mapped into this container"))
    shared = "other services may run as the same user: give this container more uids"
    return AgentUser(User(uid, gid), shared if uid == _NOBODY else "")


def ranges(mapped: list[range], subordinate: list[range]) -> Iterator[range]:
    """Yield the ranges to search, in this order. Only mapped numbers count."""
    for wanted in (*subordinate, _UNCLAIMED, range(_MAPPED_FIRST, _MAPPED_LAST + 1)):
        for there in mapped:
            common = range(max(wanted.start, there.start), min(wanted.stop, there.stop))
            if common and common.start > _ROOT:
                yield common
    for there in mapped:
        # A container with few users: its accounts hardly use its highest numbers.
        stop = min(there.stop, _NOBODY)
        first = max(_ACCOUNTS_FIRST, there.start, stop - _PROBES_MAX)
        if first < stop:
            yield range(first, stop)
    yield from (range(_NOBODY, _NOBODY + 1) for there in mapped if _NOBODY in there)


def mapped_ranges(table: str) -> list[range]:
    """Return the numbers that exist in this user namespace, from /proc/self/uid_map."""
    rows = [[int(field) for field in line.split()] for line in table.splitlines()]
    return [range(first, first + count) for first, _, count in rows]


def subordinate_ranges(table: str) -> list[range]:
    """Return root's ranges from /etc/subuid; lines that are no ranges are skipped."""
    rows = [line.split(":") for line in table.splitlines()]
    own = [row[1:] for row in rows if len(row) == 3 and row[0] in ("root", str(_ROOT))]
    return [range(int(a), int(a) + int(n)) for a, n in own if a.isdecimal() and n.isdecimal()]


def _free(kind: str, state: Path, is_taken: Callable[[int], bool]) -> int | None:
    mapped = mapped_ranges(Path(f"/proc/self/{kind}_map").read_text())
    try:
        subordinate = subordinate_ranges(Path(f"/etc/sub{kind}").read_text())
    except OSError:
        subordinate = []
    digest = hashlib.blake2b(os.fsencode(state), digest_size=_DIGEST_BYTES).digest()
    for there in ranges(mapped, subordinate):
        begin = int.from_bytes(digest) % len(there)
        for offset in range(min(len(there), _PROBES_MAX)):
            number = there[(begin + offset) % len(there)]
            if number == _NOBODY or not is_taken(number):
                return number
    return None


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def _capabilities() -> frozenset[int]:
    """Return the effective capabilities of this process, by number."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            held = int(value, 16)
            return frozenset(number for number in range(held.bit_length()) if held >> number & 1)
    return frozenset()


def _closed_folder() -> Path | None:
    """Return the first folder on the path to the program that other users cannot pass."""
    for path in (sys.prefix, sys.base_prefix, __file__):
        real = Path(path).resolve()
        for folder in (*reversed(real.parents), real):
            if folder.is_dir() and folder.stat().st_mode & _FOR_ALL != _FOR_ALL:
                return folder
    return None


def _as_root(reason: str) -> str:
    return f"that is root, without capabilities, and its number of processes is not limited: {reason}"


def _belongs_to(found: os.stat_result, user: User) -> bool:
    return (found.st_uid, found.st_gid) == (user.uid, user.gid) and stat.S_ISDIR(found.st_mode)
