"""Requests of operators: journal maintenance, seats, settings, restart and stop."""

from typing import Literal

from ipc.bounds import Amount, FilePath, Name, Number, Place, Word
from ipc.message_parts import Message


class Care(Message, frozen=True, tag="care"):
    """Maintain the journal while the service runs. Every act is answered with a Table.

    `file` is the path of a backup; `session` and `after` (the `more` of the previous page) are for an export;
    `older` and `keep` are an age and a size in the notation of hermes.toml, for pruning.
    """

    act: Literal["check", "stats", "backup", "export", "prune"]
    file: FilePath | None = None
    session: Name | None = None
    after: Place = ""
    older: Word | None = None
    keep: Word | None = None


class Reload(Message, frozen=True, tag="reload"):
    """Read hermes.toml again. Answered with a Table: a row for each change and when it takes effect.

    A file that removes a configured model is refused unless `confirmed` is true.
    """

    confirmed: bool = False


class Drain(Message, frozen=True, tag="drain"):
    """Start no turn from now on; running turns finish, and new messages are accepted and wait.

    With `host`, the host of that name is asked to, which may be another one that shares the journal.
    """

    host: Name = ""


class Undrain(Message, frozen=True, tag="undrain"):
    """Start turns again; `host` as for Drain."""

    host: Name = ""


class Scale(Message, frozen=True, tag="scale"):
    """Set the number of turns that run at once: `seats` in all, or `per_cpu` for each CPU.

    With neither, nothing changes and the answer has the current number.
    """

    seats: Number | None = None
    per_cpu: Amount | None = None


class HandOver(Message, frozen=True, tag="handover"):
    """Replace the service by its newest version in place: running turns go on and are named in the answer."""


class Stop(Message, frozen=True, tag="stop"):
    """Stop the service; running turns are resumed at the next start."""
