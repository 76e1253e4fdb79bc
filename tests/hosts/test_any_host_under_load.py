"""Messages to the same sessions through two hosts, one of which is killed: each is taken once."""

import threading
from collections.abc import Callable
from functools import partial
from itertools import count

import psycopg

from hermesctl.client import Client
from hermesctl.errors import CommandError, NotRunning
from ipc.messages import Accepted, Submit
from tests.hosts.conftest import Make
from tests.hosts.test_following import in_order
from tests.postgres_cluster import Cluster
from tests.service import Listener, Service
from tests.waiting import until

SESSIONS = [f"s{number}" for number in range(4)]
MESSAGES = 12


class Sender:
    """Sends every message through both hosts in turn until one of them has accepted it."""

    def __init__(self, session: str, hosts: list[Service], reached: Callable[[], None]) -> None:
        self.session = session
        self.accepted: dict[str, str] = {}
        self._hosts = hosts
        self._reached = reached
        self.thread = threading.Thread(target=self._send)

    def _send(self) -> None:
        turn = count()
        for number in range(MESSAGES):
            request = Submit(self.session, f"text {number}", f"key {number}", busy="queue")
            until(partial(self._try, request, turn), 90)
            self._reached()

    def _try(self, request: Submit, turn: "count[int]") -> bool:
        try:
            client = Client(self._hosts[next(turn) % 2].places)
        except NotRunning:
            return False
        try:
            self.accepted[request.key] = client.ask(request, Accepted).message
        except (CommandError, NotRunning):
            return False
        finally:
            client.close()
        return True


def has_all(listener: Listener, seq: int) -> bool:
    return bool(listener.events) and listener.events[-1].seq == seq


def test_every_message_is_taken_once_though_a_host_is_killed_in_between(
    make: Make, cluster: Cluster, schema: str
) -> None:
    one, two = make("one"), make("two")
    listeners = [two.listen(session) for session in SESSIONS]
    steps = threading.Semaphore(0)
    senders = [Sender(session, [one, two], steps.release) for session in SESSIONS]
    for sender in senders:
        sender.thread.start()
    for _ in range(len(SESSIONS) * MESSAGES // 3):
        assert steps.acquire(timeout=60)
    one.kill()
    for _ in range(len(SESSIONS) * MESSAGES // 3):
        assert steps.acquire(timeout=90)
    one.start()
    for sender in senders:
        sender.thread.join(120)
        assert len(sender.accepted) == MESSAGES
    with psycopg.connect(cluster.url(schema)) as connection:
        until(
            lambda: (
                not connection.execute(
                    "SELECT 1 FROM messages WHERE state <> 'taken' UNION ALL "
                    "SELECT 1 FROM turns WHERE state NOT IN ('done', 'failed', 'interrupted')"
                ).fetchall()
            ),
            90,
        )
        told = connection.execute("SELECT session, id FROM messages ORDER BY session, seq").fetchall()
        seqs: dict[str, int] = dict(connection.execute("SELECT name, seq FROM sessions").fetchall())
    assert sorted(told) == sorted(
        (sender.session, message) for sender in senders for message in sender.accepted.values()
    )
    for listener, session in zip(listeners, SESSIONS, strict=True):
        listener.until(partial(has_all, listener, seqs[session]))
        assert in_order(listener)
        ended = [event.fields["turn"] for event in listener.events if event.type == "turn.done"]
        assert len(ended) == len(set(ended))
