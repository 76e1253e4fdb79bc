"""A host is cut off from the database while another is there: it ends its workers before the other acts."""

import time

from tests.cutting_proxy import CuttingProxy
from tests.hosts.several import HOLD, LEASE_SECONDS, ROUNDS, Hosts, running, runs
from tests.postgres_cluster import Cluster
from tests.waiting import DEADLINE_SECONDS, until


def test_a_host_that_is_cut_off_for_two_leases_runs_nothing_that_runs_elsewhere(
    hosts: Hosts, proxy: CuttingProxy, cluster: Cluster, schema: str
) -> None:
    beta = hosts.start("beta")
    alpha = hosts.make("alpha", journal=f'url = "{cluster.url(schema, proxy.port)}"')
    for number in range(ROUNDS):
        alpha.start()
        session = f"s{number}"
        said = alpha.say(session, HOLD)
        worker = running(alpha, session)
        until(lambda: len(beta.status()["other_hosts"]) == 1)
        proxy.is_away = True
        proxy.drop()
        began = time.monotonic()
        until(lambda session=session: hosts.owner(session) == "beta")  # type: ignore[misc]
        assert not runs(worker), "it has ended before its session went elsewhere"
        batch = hosts.sql("SELECT batch FROM lives WHERE name = 'alpha' ORDER BY epoch DESC LIMIT 1")
        until(lambda began=began: time.monotonic() - began > 2 * LEASE_SECONDS)  # type: ignore[misc]
        proxy.is_away = False
        assert alpha.process is not None
        assert alpha.process.wait(DEADLINE_SECONDS) == 1
        after = hosts.sql("SELECT batch FROM lives WHERE name = 'alpha' ORDER BY epoch DESC LIMIT 1")
        assert after == batch, "nothing that came late was written"
        listener = beta.listen(session)
        listener.until(lambda told=listener: len(told.of_type("attempt.opened")) == 2)  # type: ignore[misc]
        beta.interrupt(session)
        assert listener.ending(f"{session}/1").type == "turn.interrupted"
        assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))
        ended = (
            "SELECT count(*) FROM events WHERE session = %s AND type LIKE 'turn.%%' AND type <> 'turn.opened'"
        )
        assert hosts.sql(ended, session) == [(1,)]
        assert hosts.sql("SELECT id FROM messages WHERE session = %s", session) == [(said.message,)]
