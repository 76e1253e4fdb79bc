"""Hosts are replaced one after the other under load: every accepted message ends exactly once."""

import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Submit
from tests import postgres_cluster
from tests.fake_model import FakeModel
from tests.hosts.several import Hosts
from tests.postgres_cluster import Cluster
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

SESSIONS = 6
ENDED = """
    SELECT 1 FROM messages JOIN turns ON turns.id = messages.turn
    WHERE messages.id = %s AND turns.ended_at IS NOT NULL"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with postgres_cluster.running() as cluster:
        yield cluster


@pytest.fixture
def hosts(cluster: Cluster, tmp_path: Path, model: FakeModel) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path, model, cluster.url(cluster.new_schema()))
    yield hosts
    hosts.close()


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
            # The next one when this one is answered: otherwise they would pile up.
            until(partial(self._hosts.sql, ENDED, answer), 60)

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

    def goes_on(self, more: int = 12) -> None:
        seen = len(self.accepted)
        until(lambda: len(self.accepted) >= seen + more, 60)


def test_hosts_are_upgraded_one_after_the_other_under_load(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    with Load(hosts, [alpha, beta]) as load:
        load.goes_on()
        for host, other in ((alpha, beta), (beta, alpha)):
            done = other.hermesctl("drain", "--host", host.home.name, "--wait")
            assert done.returncode == 0, done.stderr
            assert host.stop() == 0
            # As a step of a newer program does that only adds.
            hosts.sql("UPDATE journal_schema SET version = version + 1")
            load.goes_on()
            host.start()
            until(lambda other=other: len(other.show("hosts")) == 2)  # type: ignore[misc]
            load.goes_on()
    still = "SELECT count(*) FROM turns WHERE state IN ('queued', 'running', 'asking')"
    until(lambda: hosts.sql(still) == [(0,)] and not waiting(hosts), 60)
    ended = hosts.sql("SELECT id, state, (SELECT state FROM turns WHERE turns.id = turn) FROM messages")
    assert {row[0] for row in ended} >= load.accepted, "no accepted message is lost"
    assert {row[1:] for row in ended} == {("taken", "done")}
    answered = hosts.sql("SELECT count(*) FROM turns WHERE state = 'done'")
    assert answered == [(len(ended),)], "each has a turn of its own, which has ended once"
    ends = "SELECT count(*) FROM events WHERE type IN ('turn.done', 'turn.failed', 'turn.interrupted')"
    assert hosts.sql(ends) == answered


def waiting(hosts: Hosts) -> bool:
    return hosts.sql("SELECT 1 FROM messages WHERE state IN ('waiting', 'transcribing')") != []
