"""Lives of a real supervisor that end by SIGKILL at a chosen point; the product knows nothing of it.

`python -m tests.crash.doomed_supervisor` reads one order a line, `{"home", "point", "when", "count"}`, forks
a supervisor for it, tells its pid, waits for its end and tells its status. All is imported once, so a life
begins in milliseconds. With `when` of `survey` nobody dies, and the points passed are written to a file.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from ipc.places import find_places, make_private
from supervisor import app, wiring
from supervisor.clients.subscriptions import Subscriptions
from supervisor.config.settings import load
from supervisor.core import backoff
from supervisor.core.effects import Answer
from supervisor.core.records import Record
from supervisor.event_queue import EventQueue, GiveAnswer, Happened
from supervisor.journal import group_commit, journal, record_values, writer
from supervisor.performer import Performer
from supervisor.services import service, service_spec
from supervisor.telemetry.systemd_notify import Notifier
from tests.crash import points
from tests.crash.puppet_stt import PuppetStt
from tests.crash.scripted_processes import PuppetPool
from worker.syscalls import die_with_parent

SURVEY = "points.txt"
# Where a life notes that it dies of its doom, and not of a test that has seen enough.
MET = "met.txt"
# What a life ends with when it passes a write that no point names.
EXIT_UNNAMED = 97


class Doom:
    """Knows where this life ends."""

    def __init__(self, home: Path, point: str, when: str, count: int) -> None:
        self._home, self._point, self._when, self._count = home, point, when, count
        self._passed: Counter[tuple[str, str]] = Counter()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._survey = os.open(home / SURVEY, flags) if when == "survey" else None

    @contextmanager
    def around(self, point: str) -> Iterator[None]:
        if self._survey is not None:
            os.write(self._survey, f"{point}\n".encode())
        self._meet(point, "before")
        yield
        self._meet(point, "after")

    def _meet(self, point: str, when: str) -> None:
        self._passed[point, when] += 1
        here = (point, when) == (self._point, self._when)
        if here and self._passed[point, when] == self._count:
            with (self._home / MET).open("a") as met:
                met.write(f"{point} {when}\n")
            os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """A room of which every act that the engine's protocol names is a point."""

    def __init__(self, room: object, protocol: type, doom: Doom) -> None:
        self._room, self._doom = room, doom
        self._points = {act: f"{protocol.__name__}.{act}" for act in points.acts_of(protocol)}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._room, name)
        if name not in self._points:
            return found

        def act(*arguments: Any) -> Any:
            with self._doom.around(self._points[name]):
                return found(*arguments)

        return act


class WatchedConnection:
    """A connection of which every statement that changes something is a point."""

    def __init__(self, connection: object, doom: Doom, record: Callable[[], type[Record] | None]) -> None:
        self._connection: Any = connection
        self._doom, self._record = doom, record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Any = ()) -> Any:
        return self._run(self._connection.execute, sql, (sql, values))

    def executescript(self, sql: str) -> Any:
        return self._run(self._connection.executescript, sql, (sql,))

    def _run(self, run: Callable[..., Any], sql: str, arguments: tuple[Any, ...]) -> Any:
        try:
            point = points.point_of(sql, self._record())
        except LookupError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(EXIT_UNNAMED)
        if point is None:
            return run(*arguments)
        with self._doom.around(point):
            return run(*arguments)


def watch(doom: Doom) -> None:
    """Puts the watched parts in place of the real ones, in this process only."""
    latest: list[type[Record] | None] = [None]

    def parameters(record: Record) -> dict[str, Any]:
        latest[0] = type(record)
        return record_values.parameters(record)

    def connect(database: str) -> Any:
        return WatchedConnection(plain_connect(database), doom, lambda: latest[0])

    class WatchedPerformer(Performer):
        def __init__(self, **parts: Any) -> None:
            for room in points.ROOMS:
                name = room.__name__.lower()
                parts[name] = Watched(parts[name], room, doom)
            super().__init__(**parts)

    class WatchedQueue(EventQueue):
        def post(self, event: Happened, answer: GiveAnswer | None = None, *, can_wait: bool = False) -> None:
            super().post(event, answer and self._watched(answer), can_wait=can_wait)

        def _watched(self, give: GiveAnswer) -> GiveAnswer:
            def watched(answer: Answer) -> None:
                with doom.around(points.answer_point(type(answer))):
                    give(answer)

            return watched

    class WatchedSubscriptions(Subscriptions):
        def delta(self, session: str, frame: bytes) -> None:
            with doom.around(points.WORDS_SHOWN):
                super().delta(session, frame)

    class WatchedNotifier(Notifier):
        def ready(self) -> None:
            with doom.around(points.READY_TOLD):
                super().ready()

    plain_connect = journal.connect
    _put_in_place(
        (writer, "parameters", parameters),
        (journal, "connect", connect),
        (wiring, "EventQueue", WatchedQueue),
        (wiring, "Performer", WatchedPerformer),
        (wiring, "Subscriptions", WatchedSubscriptions),
        (wiring, "Notifier", WatchedNotifier),
    )


def hurry() -> None:
    """Puppets in place of the STT service, and shorter waits: a life ends within a second."""
    _put_in_place(
        (service, "Child", PuppetStt),
        # Puppets need no weights, so a machine that has none must not keep them waiting.
        (service_spec.Needed, "is_there", True),
        # A checkpoint after a few records instead of after a few hundred, so that it is met at all.
        (group_commit, "CHECKPOINT_PAGES_IDLE", 200),
        # Each life would wait seven seconds for the last attempts of the turn that is poison.
        (backoff, "_FIRST_SECONDS", 0.02),
    )


def _put_in_place(*parts: tuple[Any, str, Any]) -> None:
    for module, name, part in parts:
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, part)


def live(home: Path, point: str, when: str, count: int) -> None:
    """One life, in this process. It never returns when its doom is met."""
    log = os.open(home / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    watch(Doom(home, point, when, count))
    hurry()
    if when == "log":
        group_commit.CHECKPOINT_PAGES_IDLE = group_commit.CHECKPOINT_PAGES_MAX = sys.maxsize

    async def run() -> int:
        places = find_places(str(home))
        make_private(places.state)
        opened = journal.Journal.open(places.journal, places.lock)
        return await app.App(places, load(places.settings_file), opened, PuppetPool).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(run())
    os._exit(status)


def main() -> None:
    # Whoever runs the tests may be killed too, and nothing of this may outlive it.
    die_with_parent(signal.SIGKILL)
    # Computed once for all lives.
    points.every_point()
    # A collection in a life would write to, and so copy, the memory that all lives share.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            die_with_parent(signal.SIGKILL)
            live(Path(order["home"]), order["point"], order["when"], order["count"])
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
