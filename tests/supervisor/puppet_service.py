"""A real supervisor in a fork of the test process, with puppets for workers: it starts in a quarter second.

All is as in the service but the process room (tests/crash/scripted_processes.py): sockets, journal, recovery
and shutdown are real.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import uvloop

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import Answer, Request, Show
from ipc.places import find_places, is_listening, make_private
from supervisor.app import App
from supervisor.config.settings import load
from supervisor.journal.journal import Journal
from supervisor.process_pool import ProcessPool
from tests.crash.scripted_processes import PuppetPool
from tests.waiting import until

SETTINGS = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "nobody asks it"
[workers]
count = 2
spares = 0
[stt]
engine = "off"
[gateway]
listen = "off"
"""
_EXIT_BROKEN = 99
_LOOK_SECONDS = 0.5


class PuppetService:
    """One home; `prepare` is called in the fork, before the supervisor is made."""

    def __init__(
        self, home: Path, settings: str = SETTINGS, prepare: Callable[[], None] = lambda: None
    ) -> None:
        home.mkdir(exist_ok=True)
        (home / "hermes.toml").write_text(settings)
        self.places = find_places(str(home))
        self.log = home / "supervisor.log"
        self._prepare = prepare
        self._make_processes: Callable[..., ProcessPool] = PuppetPool
        self._start()

    def _start(self) -> None:
        make_private(self.places.state)
        self.pid = os.fork()
        if self.pid == 0:
            status = _EXIT_BROKEN
            try:
                status = self._live()
            finally:
                traceback.print_exc()
                os._exit(status)
        try:
            until(lambda: is_listening(self.places.control) or self._has_ended())
            self.client = Client(self.places)
        except (AssertionError, NotRunning):
            self.close(signal.SIGKILL)
            raise AssertionError(self.log.read_text()) from None

    def _live(self) -> int:
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
        self._prepare()

        async def run() -> int:
            journal = Journal.open(self.places.journal, self.places.lock)
            settings = load(self.places.settings_file)
            return await App(self.places, settings, journal, self._make_processes).run()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run())

    def _has_ended(self) -> bool:
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None and ended.si_pid == self.pid

    def restart(self, ending: signal.Signals = signal.SIGTERM) -> int:
        """The next life in the same home; the status of the one before."""
        status = self.close(ending)
        self._start()
        return status

    def close(self, ending: signal.Signals = signal.SIGTERM) -> int:
        """The exit status; a supervisor that does not end is killed and fails the test."""
        if hasattr(self, "client"):
            self.client.close()
        os.kill(self.pid, ending)
        try:
            until(self._has_ended)
        except AssertionError:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status

    def __enter__(self) -> "PuppetService":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status = self.close()
        assert kind is not None or status == 0, self.log.read_text()

    def ask(self, request: Request) -> Answer:
        """The first answer, also if it is a refusal; events that come before it are passed over."""
        number = self.client.post(request)
        return self.next_to(number)

    def next_to(self, number: int) -> Answer:
        """What comes next under the number of a request."""
        return self.next_to_each([number])[number]

    def next_to_each(self, numbers: Sequence[int]) -> dict[int, Answer]:
        """The same for several requests, in whatever order they are answered."""
        found: dict[int, Answer] = {}
        while len(found) < len(numbers):
            arrived = until(lambda: self.client.receive(_LOOK_SECONDS))
            if arrived is not None and arrived[0] in numbers:
                found.setdefault(*arrived)
        return found

    def rows(self, what: Any, **narrowed: Any) -> list[dict[str, Any]]:
        return list(self.client.rows(Show(what, **narrowed)))

    def status(self) -> dict[str, Any]:
        return self.rows("status")[0]

    def until_state(self, turn: str, state: str) -> dict[str, Any]:
        """The row of a turn once it is in this state."""
        found = until(
            lambda: [row for row in self.rows("turns") if (row["turn"], row["state"]) == (turn, state)]
        )
        return found[0]
