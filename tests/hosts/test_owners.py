"""Several hosts and one journal: each session has one owner, and goes on elsewhere when its host is gone."""

import pytest

from hermesctl.errors import CommandError
from tests.fake_model import FakeModel
from tests.hosts.several import HOLD, Hosts
from tests.service import Listener, Service
from tests.waiting import until


def opened(listener: Listener, attempts: int = 1) -> None:
    listener.until(lambda: len(listener.of_type("attempt.opened")) >= attempts)


def _is_said(service: Service, session: str) -> bool:
    """Whether a host has taken a message; one that has just begun does not know all others."""
    try:
        return bool(service.say(session, "hello", key="once"))
    except CommandError:
        return False


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


def test_what_queues_at_a_full_host_is_answered_by_a_free_one(hosts: Hosts) -> None:
    alpha = hosts.start("alpha", 'files = "shared"', workers="count = 1")
    beta = hosts.start("beta", 'files = "shared"')
    alpha.say("s", HOLD)
    opened(alpha.listen("s"))
    until(lambda: hosts.sql("SELECT free FROM lives ORDER BY epoch") == [(0,), (2,)])
    alpha.say("t", "hello")
    listener = beta.listen("t")
    assert listener.ending("t/1").type == "turn.done"
    times = {event.type: event.at for event in listener.events}
    assert times["attempt.opened"] - times["turn.opened"] < 2.0
    assert listener.types().count("attempt.opened") == 1
    assert (hosts.owner("s"), hosts.owner("t")) == ("alpha", "beta")


def test_a_session_with_local_files_stays_with_them_while_its_host_lives(
    hosts: Hosts, model: FakeModel
) -> None:
    """When it has to go on without them, its agent is told so, once."""
    alpha, beta = hosts.start("alpha", workers="count = 1"), hosts.start("beta")
    assert alpha.hermesctl("send", "t", "hello").returncode == 0
    assert hosts.sql("SELECT session, host FROM homes") == [("t", "alpha")]
    alpha.say("s", HOLD)
    opened(alpha.listen("s"))
    alpha.say("u", "hello")
    assert beta.listen("u").ending("u/1").type == "turn.done"
    until(lambda: not hosts.sql("SELECT 1 FROM owners WHERE session = 't'"))
    beta.say("t", "hello")
    until(lambda: hosts.owner("t") == "alpha")
    alpha.kill()
    listener = beta.listen("t")
    assert listener.ending("t/2").type == "turn.done"
    assert hosts.sql("SELECT host FROM homes WHERE session = 't'") == [("beta",)]
    assert beta.hermesctl("send", "t", "and now?").returncode == 0
    told = ["moved from the host alpha" in str(request.messages[0]) for request in model.requests()]
    assert told[-2:] == [True, False]


def test_a_clean_stop_gives_its_sessions_to_another_host_within_a_second(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    alpha.say("s", HOLD)
    opened(alpha.listen("s"))
    assert alpha.stop() == 0
    listener = beta.listen("s")
    opened(listener, 2)
    left, again = listener.of_type("attempt.lost")[0], listener.of_type("attempt.opened")[1]
    assert left.fields["reason"] == "the service was stopped"
    assert again.at - left.at < 2.0
    assert hosts.owner("s") == "beta"


def test_a_session_runs_where_its_labels_are(hosts: Hosts) -> None:
    table = {'sessions."gpu:*"': 'labels = ["gpu"]'}
    alpha = hosts.start("alpha", **table)
    with pytest.raises(CommandError, match="no host that is there has the labels"):
        alpha.say("gpu:1", "hello")
    beta = hosts.start("beta", 'labels = ["gpu"]', **table)
    until(lambda: len(hosts.sql("SELECT 1 FROM lives WHERE NOT gone")) == 2)
    until(lambda: _is_said(alpha, "gpu:1"))
    assert beta.listen("gpu:1").ending("gpu:1/1").type == "turn.done"
    assert hosts.owner("gpu:1") == "beta"
    beta.say("gpu:2", HOLD)
    opened(beta.listen("gpu:2"))
    beta.kill()
    until(lambda: hosts.sql("SELECT gone FROM lives ORDER BY epoch") == [(False,), (True,)])
    assert hosts.owner("gpu:2") is None, "no host that is there may have it"
    beta.start()
    assert hosts.owner("gpu:2") == "beta"
    assert beta.interrupt("gpu:2").turns == ("gpu:2/1",)
