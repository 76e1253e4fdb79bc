"""What those who run the service ask of it: care for the journal, seats, settings, restart and end."""

from typing import Literal

from ipc.bounds import Amount, FilePath, Name, Number, Place, Word
from ipc.message_parts import Message


class Care(Message, frozen=True, tag="care"):
    """Care for the journal while the service runs. Every act answers with a Table.

    `file` is where a backup goes; `session` and `after` (the `more` of the page before) are for an export;
    `older` and `keep` are an age and a size as hermes.toml writes them, for pruning.
    """

    act: Literal["check", "stats", "backup", "export", "prune"]
    file: FilePath | None = None
    session: Name | None = None
    after: Place = ""
    older: Word | None = None
    keep: Word | None = None


class Reload(Message, frozen=True, tag="reload"):
    """Read hermes.toml again. Answered with a Table: a row for each change and when it matters.

    A file that takes a configured model away is refused unless that is `confirmed`.
    """

    confirmed: bool = False


class Drain(Message, frozen=True, tag="drain"):
    """Begin no turn from now on; those that run finish, and what is said is accepted and waits."""


class Undrain(Message, frozen=True, tag="undrain"):
    """Begin turns again."""


class Scale(Message, frozen=True, tag="scale"):
    """So many turns at once from now on: `seats` in all, or `per_cpu` of the CPUs there are.

    With neither, nothing changes and the answer tells how many there are.
    """

    seats: Number | None = None
    per_cpu: Amount | None = None


class HandOver(Message, frozen=True, tag="handover"):
    """Replace the service by its newest version in place: running turns go on and are named in the answer."""


class Stop(Message, frozen=True, tag="stop"):
    """End the service; running turns are left for resume."""
