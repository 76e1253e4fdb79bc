"""Draining, scaling and refusing, as people at the control socket see it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Accepted, Done, Drain, Scale, Submit, Undrain
from tests.acceptance.sight import shell, worker_of
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until


def _begin(service: Service, session: str, text: str = "[[silent]] wait") -> int:
    """A turn that runs until somebody stops it; the pid of its worker."""
    service.say(session, text)
    return worker_of(service, session)


def test_while_draining_what_runs_finishes_and_what_is_said_waits(
    open_service: Service, shared: Path
) -> None:
    service, gate = open_service, shared / "open"
    _begin(service, "demo", shell(f"until [ -e {gate} ]; do sleep 0.02; done"))
    client = service.client()
    assert "no new one starts" in client.ask(Drain(), Done).note
    waits = client.ask(Submit("other", "hello", "one"), Accepted)
    assert "draining" in waits.note
    with pytest.raises(CommandError, match="is over"):  # a late request is as late as ever
        client.ask(Submit("other", "hello", "two", expect_turn="other/9"), Accepted)
    row = service.status()
    assert (row["state"], row["draining"], row["running"], row["waiting"]) == ("draining", True, 1, 1)
    assert row["draining_since"] > 0
    assert "still running" in service.hermesctl("status").stdout
    gate.touch()
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    assert service.status()["turns_ended"] == 1
    client.ask(Undrain(), Done)
    assert service.listen("other").ending("other/1").type == "turn.done"
    assert service.status()["state"] == "ready"


def test_d5_a_turn_that_ends_while_the_stop_drains_is_not_run_again(
    open_service: Service, model: FakeModel, shared: Path
) -> None:
    service, gate = open_service, shared / "open"
    assert service.process is not None
    _begin(service, "demo", shell(f"until [ -e {gate} ]; do sleep 0.02; done"))
    _begin(service, "stuck")
    service.hermesctl("drain")
    service.say("later", "hello")
    gate.touch()
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    stopped = service.hermesctl("stop", "--drain", "0.1")
    assert stopped.returncode == 0, stopped.stderr
    assert "to go on at the next start: stuck/1" in stopped.stderr
    service.process.wait(10)
    model.set_mode("echo")
    service.start()
    assert service.listen("later").ending("later/1").type == "turn.done"
    until(lambda: service.status()["running"] == 1)  # the one that was left goes on
    left = service.listen("stuck")
    left.until(lambda: len(left.of_type("attempt.opened")) == 2)
    assert left.of_type("attempt.lost")[0].fields["reason"] == "the service was stopped"
    assert [row["turn"] for row in service.show("turns", session="demo")] == ["demo/1"]
    assert service.show("turns", session="demo")[0]["attempts"] == 1


def test_drain_waits_and_stop_takes_its_time_from_the_settings(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", turns='drain = "2s"')
    assert service.process is not None
    assert service.hermesctl("drain", "--wait").stdout == "drained: no turn runs\n"
    assert "taking turns again" in service.hermesctl("undrain").stdout
    _begin(service, "demo")
    stopped = service.hermesctl("stop", "--drain")
    assert "waiting for demo/1 to end" in stopped.stderr
    assert "not ended within 2 s, to go on at the next start: demo/1" in stopped.stderr
    assert service.process.wait(10) == 0


def test_e3_seats_are_scaled_live_and_no_running_turn_is_touched(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(workers="count = 1")
    first = _begin(service, "one")
    service.say("two", "[[silent]] wait")
    service.say("three", "hello")
    assert service.status()["queued"] == 2
    assert service.hermesctl("scale", "2").stdout == "seats: 2, before: 1\n"
    second = worker_of(service, "two")
    until(lambda: len([row for row in service.show("workers") if row["state"] == "idle"]) == 1)
    service.hermesctl("scale", "1")
    row = service.status()
    assert (row["seats"], row["running"], row["queued"]) == (1, 2, 1)
    assert {each["pid"] for each in service.show("workers")} >= {first, second}
    service.interrupt("two")
    service.interrupt("one")
    assert service.listen("three").ending("three/1").type == "turn.done"
    until(lambda: [row["state"] for row in service.show("workers")] == ["idle", "idle"])


def test_the_amount_is_checked_and_shown(service: Service) -> None:
    assert service.hermesctl("scale").stdout.startswith("2 seats on ")
    for amount, code in (("0", 5), ("10001", 5), ("0/cpu", 5), ("1.5", 2), ("many", 2)):
        refused = service.hermesctl("scale", amount)
        assert refused.returncode == code, amount
        assert "Traceback" not in refused.stderr
    client = service.client()
    with pytest.raises(CommandError, match="both given"):
        client.ask(Scale(seats=1, per_cpu=1.0), Done)
    service.hermesctl("scale", "1.5/cpu")
    assert service.status()["seats"] == max(1, round(1.5 * service.status()["cpus"]))


def test_a_full_queue_refuses_before_anything_is_accepted(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", turns="queue_max = 2")
    _begin(service, "one")
    service.say("two", "hello")
    service.say("one", "later", busy="queue")
    refused = service.hermesctl("send", "three", "hello")
    assert refused.returncode == 5
    assert "2 messages and turns wait" in refused.stderr
    assert "(again in 5 s)" in refused.stderr
    assert {row["session"] for row in service.show("sessions")} == {"one", "two"}
    service.interrupt("one")
    assert service.listen("two").ending("two/1").type == "turn.done"
    service.say("three", "hello")
    assert service.listen("three").ending("three/1").type == "turn.done"


def test_e9_a_host_short_of_memory_refuses_by_name_and_says_since_when(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(workers='count = 1\nmemory_free_min = "900TiB"')
    until(lambda: service.status()["late"])
    late = service.status()["late"][0]
    assert late["what"] == "memory"
    assert "MiB must stay so" in late["detail"]
    assert service.status()["uptime_seconds"] >= late["seconds"] >= 0
    refused = service.hermesctl("send", "demo", "hello")
    assert refused.returncode == 5
    assert "short of memory" in refused.stderr
    assert "(again in 10 s)" in refused.stderr
    assert "late: memory for" in service.hermesctl("status").stdout
    assert service.show("sessions") == []
