"""Several hosts and one journal: each session has one owner, and goes on elsewhere when its host is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres_cluster
from tests.fake_model import FakeModel
from tests.hosts.several import Hosts
from tests.postgres_cluster import Cluster
from tests.service import Listener
from tests.waiting import until

HOLD = "[[silent]] hold"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with postgres_cluster.running() as cluster:
        yield cluster


@pytest.fixture
def hosts(cluster: Cluster, tmp_path: Path, model: FakeModel) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path, model, cluster.url(cluster.new_schema()))
    yield hosts
    hosts.close()


def opened(listener: Listener, attempts: int = 1) -> None:
    listener.until(lambda: len(listener.of_type("attempt.opened")) >= attempts)


def test_two_hosts_answer_sessions_of_their_own(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    for service, session in ((alpha, "a"), (beta, "b")):
        done = service.hermesctl("send", session, "hello")
        assert done.returncode == 0, done.stderr
    assert (hosts.owner("a"), hosts.owner("b")) == ("alpha", "beta"), "each keeps the worker of its session"
    assert [row["session"] for row in alpha.show("sessions")] == ["b", "a"]
    standing = [("alpha", "open", 2), ("beta", "open", 2)]
    until(lambda: hosts.sql("SELECT name, state, seats FROM lives ORDER BY epoch") == standing)
    assert beta.stop() == 0
    assert hosts.sql("SELECT gone FROM lives ORDER BY epoch") == [(False,), (True,)]


def test_a_killed_hosts_turn_is_answered_by_another(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    said = alpha.say("s", HOLD)
    opened(alpha.listen("s"))
    alpha.kill()
    listener = beta.listen("s")
    opened(listener, 2)
    assert hosts.owner("s") == "beta"
    lost = listener.of_type("attempt.lost")[0].fields["reason"]
    assert lost == "its host was lost, and another one has taken the session over"
    again = beta.say("s", "never mind", busy="interrupt")
    assert listener.ending("s/1").type == "turn.interrupted"
    assert listener.ending("s/2").type == "turn.done"
    assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))
    ended = hosts.sql("SELECT messages, state FROM turns WHERE session = 's' ORDER BY number")
    assert ended == [(f'["{said.message}"]', "interrupted"), (f'["{again.message}"]', "done")]
