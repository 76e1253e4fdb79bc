"""A model server that is away costs no turn: all wait, one at a time finds out, and all are answered."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.waiting import until

SESSIONS = ("one", "two", "three", "four")
# An attempt asks at most so often before it is an outage; four may have begun before it is known to be one.
TRIES = 3 * len(SESSIONS)
DEADLINE_SECONDS = 90.0


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[tuple[Service, int]]:
    """A service whose model server is not there: its port is taken, and nobody listens."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with Service(tmp_path / "home", _settings(f"http://127.0.0.1:{port}/v1", "count = 4")) as service:
            yield service, port


def _settings(base_url: str, workers: str) -> str:
    return f'[model]\nbase_url = "{base_url}"\nname = "fake"\n[stt]\nengine = "off"\n[workers]\n{workers}\n'


def outage(service: Service) -> dict[str, Any]:
    """What status says of the one endpoint that is away; nothing when none is."""
    return next(iter(service.status()["outages"]), {})


def metric(service: Service, name: str) -> float:
    [row] = [row for row in service.show("metrics") if row["name"] == name]
    return float(row["samples"][0]["value"])


def say_to_all(service: Service) -> list[Listener]:
    listeners = []
    for session in SESSIONS:
        service.say(session, f"hello from {session}")
        listeners.append(service.listen(session))
    return listeners


def check_all_answered(listeners: list[Listener]) -> None:
    for session, listener in zip(SESSIONS, listeners, strict=True):
        done = listener.ending(f"{session}/1", DEADLINE_SECONDS)
        assert (done.type, done.fields["text"]) == ("turn.done", f"You said: hello from {session}")


def test_an_outage_of_seconds_costs_no_turn_and_few_requests(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 4", turns="attempts_max = 1")
    model.set_mode("500", status=503)
    listeners = say_to_all(service)
    until(lambda: outage(service).get("turns") == 4, DEADLINE_SECONDS)
    assert metric(service, "hermes_model_ready") == 0
    assert metric(service, "hermes_turns_waiting_for_model") == 4
    until(lambda: metric(service, "hermes_model_unreachable_seconds") > 5, DEADLINE_SECONDS)
    seconds = metric(service, "hermes_model_unreachable_seconds")
    during = len(model.requests())
    model.set_mode("normal")
    check_all_answered(listeners)
    # Probes come after 0.75 s at the earliest, then after twice as long each time.
    probes = sum(1 for number in range(10) if 0.75 * (2**number - 1) < seconds)
    assert during <= TRIES + probes
    for listener in listeners:
        opened, lost = listener.of_type("attempt.opened"), listener.of_type("attempt.lost")
        assert len(opened) == len(lost) + 1
        assert all("HTTP 503" in each.fields["reason"] for each in lost)
    until(lambda: service.status()["outages"] == [])
    assert metric(service, "hermes_model_ready") == 1
    assert metric(service, "hermes_model_unreachable_seconds") == 0


def test_a_server_that_is_not_there_is_waited_for_visibly(nowhere: tuple[Service, int]) -> None:
    service, port = nowhere
    service.say("one", "hello from one")
    listener = service.listen("one")
    listener.until(lambda: any("it waits for the model server" in note for note in listener.notes))
    until(lambda: outage(service).get("turns") == 1)
    status = service.hermesctl("status").stdout
    assert "model unreachable since" in status
    assert f"nothing answers at http://127.0.0.1:{port}/v1; 1 turn waits" in status
    assert "late: model" in status
    assert "model unreachable since" in service.hermesctl("why", "one/1").stdout
    accepted = service.say("two", "hello from two")
    assert "model unreachable for" in accepted.note
    assert "this waits" in accepted.note
    assert service.status()["busy"] <= 1  # a turn that waits holds no seat; the probe may
    service.say("three", "hello from three")
    service.say("four", "hello from four")
    listeners = [listener, *(service.listen(session) for session in SESSIONS[1:])]
    until(lambda: outage(service).get("turns", 0) >= 3)
    with FakeModel(port) as fake:
        check_all_answered(listeners)
        assert len(fake.requests()) == 4
        assert not any(each.disconnected for each in fake.requests())
    told = [note for each in listeners for note in each.notes if note == "the model server answers again"]
    assert len(told) == 1
    until(lambda: service.status()["outages"] == [])
    assert "unreachable" not in service.hermesctl("status").stdout


def test_what_a_server_asks_for_is_granted(service: Service, model: FakeModel) -> None:
    model.set_mode("429", times=1, retry_after="4")
    service.say("demo", "hello")
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.lost"))
    service.say("other", "hello")
    assert listener.ending("demo/1", DEADLINE_SECONDS).type == "turn.done"
    assert service.listen("other").ending("other/1", DEADLINE_SECONDS).type == "turn.done"
    first, second, third = model.requests()
    assert second.began - first.began >= 4
    assert third.began >= second.began


@pytest.mark.parametrize("mode", ["400", "401", "401 status=403", "404", "404 kind=model"])
def test_what_no_retry_mends_fails_at_once(service: Service, model: FakeModel, mode: str) -> None:
    service.say("demo", f"[[{mode}]] go")
    listener = service.listen("demo")
    assert listener.ending("demo/1").type == "turn.failed"
    assert listener.notes == []
    assert len(model.requests()) == 1
    assert service.status()["outages"] == []


def test_a_turn_that_waits_for_its_model_is_interrupted_at_once(service: Service, model: FakeModel) -> None:
    model.set_mode("429", retry_after="60")
    service.say("demo", "hello")
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.lost"))
    service.interrupt("demo")
    ended = listener.ending("demo/1")
    assert (ended.type, ended.fields["killed"]["how"]) == ("turn.interrupted", "not started")
    service.say("demo", "hello again")
    until(lambda: outage(service).get("turns") == 1)
    assert len(model.requests()) == 1


def test_other_settings_let_turns_go_that_wait(nowhere: tuple[Service, int], model: FakeModel) -> None:
    service, _ = nowhere
    listeners = say_to_all(service)
    until(lambda: outage(service).get("turns") == 4, DEADLINE_SECONDS)
    (service.home / "hermes.toml").write_text(settings_for(model, workers="count = 4"))
    assert service.hermesctl("reload").returncode == 0
    check_all_answered(listeners)
    assert len(model.requests()) == 4


def test_a_conversation_that_its_server_cannot_answer_does_not_hold_up_the_others(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(workers="count = 2", turns='outage_max = "8s"')
    service.say("bad", "[[500]] go")
    bad = service.listen("bad")
    bad.until(lambda: bad.of_type("attempt.lost"))
    for number in range(3):
        service.say(f"good-{number}", "hello")
        done = service.listen(f"good-{number}").ending(f"good-{number}/1", DEADLINE_SECONDS)
        assert done.type == "turn.done"
    ended = bad.ending("bad/1", DEADLINE_SECONDS)
    assert ended.type == "turn.failed"
    assert "HTTP 500" in ended.fields["error"]
    assert "[turns] outage_max" in ended.fields["error"]
    assert not ended.fields["poison"]
