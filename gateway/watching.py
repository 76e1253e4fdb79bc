"""Tables of the service for pages that show them live: sessions, questions, and the service itself.

Problem: a page wants the present rows at once and then what changes. There are thousands of sessions and many
open pages, and the supervisor must not pay for each of them.

One poller asks the supervisor about once a second while anything is watched, for all watchers together, and
not at all when nothing is. A session's row changes with its events, and an event moves the session to the
beginning of the table. So the poller reads the table down to the time of the last poll, one page on a usual
day, however many sessions there are, and compares the rows with those it has seen. What a watcher has not
taken yet is merged: rows of sessions by name, of the other tables the last state only. A watcher that is far
behind in sessions gets the newest ones again. So a slow one costs bounded memory.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Literal, get_args

import msgspec

from gateway.errors import HttpError
from gateway.namespace import Namespace
from gateway.supervisor_client import SupervisorClient
from ipc.messages import Show, Table

Topic = Literal["sessions", "questions", "service"]
TOPICS = get_args(Topic)
Row = dict[str, Any]

_POLL_SECONDS = 1.0
# A new watcher does not wait for the next poll, but many new ones share one.
_SOON_SECONDS = 0.1
# Sessions in the first frame, and in the page that is compared in every poll.
SESSIONS_FIRST = 100
_PAGE_ROWS = 1_000
# More sessions than change in a second, more questions than wait; and pages of a search for an owner's rows.
_PAGES_MAX = 10
# Events of different sessions are not written in the order of their times.
_MARGIN_SECONDS = 1.0
# Changed sessions that a watcher has not taken.
_PENDING_MAX = 1_000


class Watcher:
    """The topics of a connection and what it has not taken; `wake` is called when there is something."""

    def __init__(self, namespace: Namespace, topics: Iterable[Topic], wake: Callable[[], None]) -> None:
        self.namespace = namespace
        self.topics = frozenset(topics)
        self._wake = wake
        # Topics that it has not had any frame of.
        self.missing = set(self.topics)
        self._sessions: dict[str, Row] = {}
        self._has_all = False
        # The last state of the other tables, and what was sent of them last.
        self._frames: dict[str, bytes] = {}
        self._sent: dict[str, bytes] = {}

    def give_newest(self, rows: Sequence[Row]) -> None:
        """The newest sessions of the namespace: what a page begins with."""
        self.missing.discard("sessions")
        self._has_all = True
        self._sessions = {row["session"]: row for row in rows}
        self._wake()

    def give_changed(self, rows: Sequence[Row]) -> None:
        if "sessions" in self.missing:
            return  # the newest ones come first, and are newer than these
        found = [row for row in rows if self.namespace.owns(row["session"])]
        self._sessions |= {row["session"]: row for row in found}
        if len(self._sessions) > _PENDING_MAX:
            self._sessions.clear()
            self.missing.add("sessions")
        elif found:
            self._wake()

    def give(self, topic: str, frame: bytes) -> None:
        """The state of a table that is sent whole, if it is another one than before."""
        self.missing.discard(topic)
        if frame != self._frames.get(topic, self._sent.get(topic)):
            self._frames[topic] = frame
            self._wake()

    def take(self) -> list[bytes]:
        """Returns the frames that are to be sent now."""
        frames = list(self._frames.values())
        self._sent |= self._frames
        self._frames = {}
        if self._sessions or self._has_all:
            rows = [self.namespace.row(row) for row in self._sessions.values()]
            frame = {"type": "sessions", "rows": rows} | ({"all": True} if self._has_all else {})
            frames.append(msgspec.json.encode(frame))
            self._sessions, self._has_all = {}, False
        return frames


class Watching:
    """The poller and its watchers."""

    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        self._watchers: set[Watcher] = set()
        self._poller: asyncio.Task[None] | None = None
        self._joined = asyncio.Event()
        self._forget()

    def add(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)
        self._joined.set()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._run())

    def remove(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    async def _run(self) -> None:
        self._forget()
        while self._watchers:
            self._joined.clear()
            began = monotonic()
            for watcher in self._watchers:
                watcher.give("supervisor", _frame("supervisor", up=self._supervisor.is_up))
            with suppress(HttpError):  # it is away or busy: the next poll finds what has changed meanwhile
                await self._poll()
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(began + _POLL_SECONDS - monotonic()):
                await self._joined.wait()
                await asyncio.sleep(began + _SOON_SECONDS - monotonic())

    def _forget(self) -> None:
        # By name, those of the last poll; the latest time among them, None before the first poll.
        self._seen: dict[str, Row] = {}
        self._newest_at: float | None = None

    async def _poll(self) -> None:
        """Reads what any watcher wants. New watchers come last, so that no older row follows their first."""
        if self._wanting("sessions"):
            changed = await self._changed()
            for watcher in self._wanting("sessions"):
                watcher.give_changed(changed)
            await self._welcome()
        if self._wanting("questions"):
            rows = await self._all(Show("questions", limit=_PAGE_ROWS))
            self._give_whole("questions", lambda namespace: {"rows": _of(namespace, rows)})
        if self._wanting("service"):
            (status,) = await self._all(Show("status"))
            workers, services = await self._all(Show("workers")), await self._all(Show("services"))
            self._give_whole(
                "service",
                lambda namespace: {
                    "status": status,
                    "workers": [namespace.seat(row) for row in workers],
                    "services": services,
                },
            )

    async def _changed(self) -> list[Row]:
        """Returns the rows of sessions that are not as they were in the last poll."""
        seen: dict[str, Row] = {}
        request = Show("sessions", limit=SESSIONS_FIRST)
        for _ in range(_PAGES_MAX):
            page = await self._supervisor.ask(request, Table)
            seen |= {row["session"]: row for row in page.rows}
            if self._newest_at is None or not page.more:
                break
            if page.rows[-1]["last_at"] < self._newest_at - _MARGIN_SECONDS:
                break
            request = Show("sessions", limit=_PAGE_ROWS, after=page.more)
        changed = [row for name, row in seen.items() if row != self._seen.get(name)]
        self._seen = seen
        self._newest_at = max((row["last_at"] for row in seen.values()), default=0.0)
        return changed

    async def _welcome(self) -> None:
        """Gives those that have no sessions yet the newest ones: one search for all of an owner."""
        owners: dict[Namespace, list[Watcher]] = {}
        for watcher in self._wanting("sessions"):
            if "sessions" in watcher.missing:
                owners.setdefault(watcher.namespace, []).append(watcher)
        for namespace, watchers in owners.items():
            rows = await self._all(
                Show("sessions", limit=SESSIONS_FIRST, prefix=namespace.prefix), SESSIONS_FIRST
            )
            for watcher in watchers:
                watcher.give_newest(rows)

    async def _all(self, request: Show, wanted: int = _PAGE_ROWS) -> list[Row]:
        rows: list[Row] = []
        for _ in range(_PAGES_MAX):
            page = await self._supervisor.ask(request, Table)
            rows += page.rows
            if not page.more or len(rows) >= wanted:
                break
            request = msgspec.structs.replace(request, after=page.more)
        return rows[:wanted]

    def _give_whole(self, topic: Topic, fields: Callable[[Namespace], dict[str, Any]]) -> None:
        frames: dict[Namespace, bytes] = {}
        for watcher in self._wanting(topic):
            namespace = watcher.namespace
            if namespace not in frames:
                frames[namespace] = _frame(topic, **fields(namespace))
            watcher.give(topic, frames[namespace])

    def _wanting(self, topic: Topic) -> list[Watcher]:
        return [watcher for watcher in self._watchers if topic in watcher.topics]


def _of(namespace: Namespace, rows: Iterable[Row]) -> list[Row]:
    return [namespace.row(row) for row in rows if namespace.owns(row["session"])]


def _frame(type: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"type": type, **fields})
