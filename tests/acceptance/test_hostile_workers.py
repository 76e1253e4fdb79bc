"""Frames that no honest worker sends: that worker is ended by name, and the service lives."""

from collections.abc import Iterator
from pathlib import Path

from bench.pretend import pretend_service
from hermesctl.client import Client
from ipc.messages import Event, FromWorker, Subscribe, Subscribed
from tests.fuzz.at_workers import PlayedWorkers
from tests.waiting import DEADLINE_SECONDS
from tests.wire_values import frame, out_of_bounds, structs


def lost(client: Client) -> Iterator[str]:
    """Why each attempt was lost, in order, from now on."""
    client.answer_to(client.post(Subscribe(None)), Subscribed)
    return _reasons(client)


def _reasons(client: Client) -> Iterator[str]:
    while True:
        arrived = client.receive(DEADLINE_SECONDS)
        assert arrived is not None, "no further attempt was lost"
        if isinstance(arrived[1], Event) and arrived[1].type == "attempt.lost":
            yield arrived[1].fields["reason"]


def test_h13_a_worker_that_leaves_the_bounds_is_ended_by_name(tmp_path: Path) -> None:
    offences = [each for struct in structs(FromWorker) for each in out_of_bounds(struct)]
    with pretend_service(tmp_path / "home", 1) as (places, pid), PlayedWorkers(places, pid) as workers:
        watcher = Client(places)
        reasons = lost(watcher)
        for path, message in offences:
            workers.send(frame(message))
            reason = next(reasons)
            assert "it sent a frame that cannot be read" in reason
            assert path.rpartition(".")[2].partition("[")[0] in reason
            assert len(reason) < 300
        workers.check_alive()
        watcher.close()
    assert len(offences) > 50
