"""The database is killed again and again while messages arrive: every accepted one ends exactly once."""

from tests.hosts.load import Load
from tests.hosts.several import ROUNDS, Hosts
from tests.postgres_cluster import Cluster


def test_nothing_is_lost_when_the_database_is_killed_under_load(hosts: Hosts, cluster: Cluster) -> None:
    services = [hosts.start("alpha"), hosts.start("beta")]
    with Load(hosts, services) as load:
        for _ in range(ROUNDS):
            load.goes_on()
            cluster.stop("immediate")
            cluster.start()
        load.goes_on()
    load.all_end_once()
    assert hosts.sql("SELECT name, gone FROM lives ORDER BY name") == [("alpha", False), ("beta", False)]
