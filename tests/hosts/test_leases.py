"""A host that is stopped loses its sessions, and none of its workers runs once another host has them."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.hosts.several import HOLD, LEASE_SECONDS, ROUNDS, Hosts, running, runs
from tests.postgres_cluster import Cluster
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

# That of the host that is stopped.
LAST_LIFE = "SELECT batch, gone FROM lives WHERE name = 'alpha' ORDER BY epoch DESC LIMIT 1"


def below(pid: int) -> list[int]:
    """A process and all its descendants, the first of them first."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += below(int(child))
    return found


def begun_again(service: Service, session: str) -> None:
    listener = service.listen(session)
    listener.until(lambda: len(listener.of_type("attempt.opened")) == 2)


def send(number: signal.Signals, pids: list[int]) -> None:
    """One that goes on may end others before it is their turn."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.mark.parametrize("which", ["supervisor", "all"])
def test_no_worker_of_a_stopped_host_runs_once_its_sessions_are_elsewhere(hosts: Hosts, which: str) -> None:
    alpha, beta = hosts.make("alpha"), hosts.start("beta")
    for number in range(ROUNDS):
        alpha.start()
        session = f"s{number}"
        alpha.say(session, HOLD)
        worker = running(alpha, session)
        assert alpha.process is not None
        stopped = below(alpha.process.pid) if which == "all" else [alpha.process.pid]
        assert which == "supervisor" or worker in stopped
        before = time.monotonic()
        send(signal.SIGSTOP, stopped)
        until(lambda session=session: hosts.owner(session) == "beta")  # type: ignore[misc]
        assert which == "all" or not runs(worker), "the guard has ended it before the lease was over"
        assert time.monotonic() - before < 2 * LEASE_SECONDS + 1
        batch = hosts.sql(LAST_LIFE)[0][0]
        lapse(2 * LEASE_SECONDS - (time.monotonic() - before))
        send(signal.SIGCONT, stopped)
        until(lambda worker=worker: not runs(worker), 1.0)  # type: ignore[misc]
        assert alpha.process.wait(DEADLINE_SECONDS) == 1
        assert "another host took its sessions" in alpha.log()
        begun_again(beta, session)
        assert hosts.sql(LAST_LIFE) == [(batch, True)], "nothing that came late was written"
        beta.say(session, "never mind", busy="interrupt")
        listener = beta.listen(session)
        assert listener.ending(f"{session}/1").type == "turn.interrupted"
        assert listener.ending(f"{session}/2").type == "turn.done"
        assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))


def test_a_host_without_its_database_ends_its_workers_and_goes_on_when_it_is_back(
    hosts: Hosts, cluster: Cluster
) -> None:
    """No other host is there, so its life is not over."""
    alpha = hosts.start("alpha")
    alpha.say("s", HOLD)
    worker = running(alpha, "s")
    cluster.stop("immediate")
    until(lambda: not runs(worker), 2 * LEASE_SECONDS)
    cluster.start()
    listener = alpha.listen("s")
    listener.until(lambda: len(listener.of_type("attempt.opened")) == 2)
    reason = listener.of_type("attempt.lost")[0].fields["reason"]
    assert reason == "this host could not renew its lease in time, so all its workers were ended"
    assert hosts.sql("SELECT gone FROM lives") == [(False,)]
    assert alpha.interrupt("s").turns == ("s/1",)
    assert listener.ending("s/1").type == "turn.interrupted"


def test_a_restart_in_place_keeps_its_lease_and_its_turns(hosts: Hosts) -> None:
    """Its next image takes longer to start than the lease of these tests lasts."""
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    alpha.say("s", "[[slow interval=0.1 count=60]]")
    worker = running(alpha, "s")
    done = alpha.hermesctl("restart", "--keep-turns")
    assert done.returncode == 0, done.stderr
    until(alpha.answers)
    assert runs(worker)
    listener = beta.listen("s")
    assert listener.ending("s/1").type == "turn.done"
    assert listener.types().count("attempt.opened") == 1
    assert hosts.sql("SELECT name, gone FROM lives ORDER BY epoch") == [("alpha", False), ("beta", False)]


def test_a_database_that_was_away_gives_every_host_time(hosts: Hosts, cluster: Cluster) -> None:
    """By its clock every lease is over when it comes back, and the first host could take all sessions."""
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    for service, session in ((alpha, "a"), (beta, "b")):
        service.say(session, HOLD)
        running(service, session)
    assert beta.process is not None
    cluster.stop("immediate")
    lapse(2 * LEASE_SECONDS)
    beta.process.send_signal(signal.SIGSTOP)
    cluster.start()
    until(lambda: hosts.sql("SELECT 1 FROM lives WHERE name = 'alpha' AND until > clock_timestamp()"))
    lapse(LEASE_SECONDS / 3)
    assert hosts.sql("SELECT gone FROM lives") == [(False,), (False,)]
    beta.process.send_signal(signal.SIGCONT)
    for service, session in ((alpha, "a"), (beta, "b")):
        begun_again(service, session)
        assert service.interrupt(session).turns == (f"{session}/1",)
    assert hosts.sql("SELECT gone FROM lives") == [(False,), (False,)]


def lapse(seconds: float) -> None:
    """Return when so much time has passed; it is what the test is about."""
    began = time.monotonic()
    until(lambda: time.monotonic() - began > seconds)
