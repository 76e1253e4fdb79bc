"""Passes notices of other hosts to the parts that handle them, and knows which other lives there are.

A notice is a list whose first entry names its kind (supervisor/journal/postgres/notices.py). A kind that is
not known is ignored: it is of a later version.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from supervisor.containment import Containment, Fault
from supervisor.journal.asking import Failed

# Lives that began or ended without a notice are found within this time.
_LOOK_SECONDS = 2.0
_HERE = "here"

Notice = list[Any]


class Notices(Protocol):
    """The connection through which notices go."""

    @property
    def life(self) -> int: ...
    def open(
        self, received: Callable[[int | None, list[Notice]], None], connected: Callable[[], None]
    ) -> None: ...
    def tell(self, life: int | None, notice: Notice) -> None: ...
    def living(self, then: Callable[[Mapping[int, str]], None], failed: Failed) -> None: ...


class Peers:
    """`others` are the other lives that are not gone, by number, with the names of their hosts.

    `sender` is the life whose notice is being handled; None if its version does not say so.
    """

    def __init__(self, notices: Notices, contain: Containment) -> None:
        self._notices = notices
        self.others: Mapping[int, str] = {}
        self.sender: int | None = None
        self.tell = notices.tell
        self._handlers: dict[str, Callable[..., None]] = {_HERE: self._begun}
        self._after_connect: list[Callable[[], None]] = []
        self._each_look: list[Callable[[], None]] = []
        self._loop = asyncio.get_running_loop()
        self._handle = contain.around("loop", self._handled, _not_handled)

    def on(self, kind: str, handle: Callable[..., None]) -> None:
        """`handle` gets the entries of a notice behind its kind."""
        self._handlers[kind] = handle

    def on_connected(self, call: Callable[[], None]) -> None:
        """Call it after each connect: notices may have been missed."""
        self._after_connect.append(call)

    def on_look(self, call: Callable[[], None]) -> None:
        """Call it every few seconds: what a host did not tell because it died is found that way."""
        self._each_look.append(call)

    def open(self) -> None:
        self._notices.open(self._received, self._connected)
        self._loop.call_later(_LOOK_SECONDS, self._look_again)

    def _received(self, sender: int | None, notices: list[Notice]) -> None:
        self.sender = sender
        for notice in notices:
            self._handle(notice)

    def _handled(self, notice: Notice) -> None:
        kind, *entries = notice
        if handle := self._handlers.get(kind):
            handle(*entries)

    def _connected(self) -> None:
        self.tell(None, [_HERE, self._notices.life])
        self._look()
        for call in self._after_connect:
            call()

    def _begun(self, life: int) -> None:
        self.others = {**self.others, life: self.others.get(life, "")}
        self._look()

    def _look_again(self) -> None:
        self._loop.call_later(_LOOK_SECONDS, self._look_again)
        self._look()
        for call in self._each_look:
            call()

    def _look(self) -> None:
        self._notices.living(self._found, lambda error: None)

    def _found(self, others: Mapping[int, str]) -> None:
        self.others = others


def _not_handled(fault: Fault, notice: Notice) -> None:
    """A notice that could not be handled is like one that was lost."""
