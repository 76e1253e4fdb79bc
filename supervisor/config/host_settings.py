"""[hosts]: what this host is called, and which sessions it may have, where several share one journal."""

import re
import socket
from dataclasses import dataclass
from typing import Literal

from supervisor.config.fields import AFTER_RESTART, Reading, at_least, key, maybe, one_of

# Whether the workspaces of sessions are on a disk of this host, or on one that all hosts have mounted.
Files = Literal["local", "shared"]

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _read_name(value: object) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError
    return value


def _read_labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(sorted(set(map(_read_name, value))))


_NAME = Reading('a name of letters, digits, ".", "_" and "-", such as "alpha"', _read_name)
LABELS = Reading('a list of labels such as ["gpu"], or []', _read_labels)


@dataclass(frozen=True)
class Hosts:
    """[hosts]: of use with a journal on a server only."""

    name: str | None = key("name", maybe(_NAME), applies=AFTER_RESTART)
    labels: tuple[str, ...] = key("labels", LABELS, [], AFTER_RESTART)
    # Shorter than this, an ordinary pause of a host or of the network would cost it its sessions.
    lease_seconds: float = key("lease", at_least(2), "15s", AFTER_RESTART)
    files: Files = key("files", one_of(Files), "local", AFTER_RESTART)

    @property
    def own_name(self) -> str:
        return self.name or socket.gethostname()
