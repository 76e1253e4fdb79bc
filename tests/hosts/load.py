"""Clients that send to all hosts, whatever happens to these, and what must have become of their messages."""

import threading
from functools import partial
from itertools import count

import psycopg

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Submit
from tests.hosts.several import Hosts
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

SESSIONS = 6
ENDED = """
    SELECT 1 FROM messages JOIN turns ON turns.id = messages.turn
    WHERE messages.id = %s AND turns.ended_at IS NOT NULL"""


class Load:
    """Clients of all hosts: each message goes to one after the other until one accepts it."""

    def __init__(self, hosts: Hosts, services: list[Service]) -> None:
        self._hosts = hosts
        self._services = services
        self._stopping = threading.Event()
        self.accepted: set[str] = set()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(SESSIONS)]

    def __enter__(self) -> "Load":
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join(DEADLINE_SECONDS)

    def _run(self, session: int) -> None:
        for number in count():
            request = Submit(f"s{session}", f"number {number}", f"key {number}", "queue")
            while (answer := self._answer(number, request)) is None:
                number += 1
            self.accepted.add(answer)
            if self._stopping.is_set():
                return
            # The next one when this one is answered: otherwise they would pile up. Each look is a connection.
            until(partial(self._has_ended, answer), 60, 0.03)

    def _answer(self, turn: int, request: Submit) -> str | None:
        """None while the host whose turn it is does not accept; the same key again is the same message."""
        try:
            client = Client(self._services[turn % len(self._services)].places)
        except CommandError:
            return None
        try:
            return client.ask(request, Accepted).message
        except CommandError:
            return None
        finally:
            client.close()

    def _has_ended(self, message: str) -> bool:
        try:
            return self._hosts.sql(ENDED, message) != []
        except psycopg.OperationalError:
            return False

    def goes_on(self, more: int = 12) -> None:
        seen = len(self.accepted)
        until(lambda: len(self.accepted) >= seen + more, 60)

    def all_end_once(self) -> None:
        """After the last message."""
        hosts = self._hosts
        still = "SELECT count(*) FROM turns WHERE state IN ('queued', 'running', 'asking')"
        waiting = "SELECT count(*) FROM messages WHERE state IN ('waiting', 'transcribing')"
        until(lambda: hosts.sql(still) == hosts.sql(waiting) == [(0,)], 60)
        ended = hosts.sql("SELECT id, state, (SELECT state FROM turns WHERE turns.id = turn) FROM messages")
        assert {row[0] for row in ended} >= self.accepted, "no accepted message is lost"
        assert {row[1:] for row in ended} == {("taken", "done")}
        answered = hosts.sql("SELECT count(*) FROM turns WHERE state = 'done'")
        assert answered == [(len(ended),)], "each has a turn of its own, which has ended once"
        ends = "SELECT count(*) FROM events WHERE type IN ('turn.done', 'turn.failed', 'turn.interrupted')"
        assert hosts.sql(ends) == answered
