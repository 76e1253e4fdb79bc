"""Hosts are replaced one after the other under load: every accepted message ends exactly once."""

from tests.hosts.load import Load
from tests.hosts.several import Hosts
from tests.waiting import until


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
    load.all_end_once()
