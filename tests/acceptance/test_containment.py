"""A defect at any boundary costs what was being served there, and nothing else."""

import secrets
from collections.abc import Iterator

import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Answer, Care, Cut, Event, Interrupt, Show, Submit, Table
from tests.acceptance.faulty_supervisor import BAD_FOLLOW, SECRET
from tests.fake_model import FakeModel
from tests.raw_client import RawClient
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until
from tests.wire_values import frame


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("faulty") / "home"
    stt = f'engine = "openai"\nbase_url = "{model_server.base_url}"'
    settings = settings_for(model_server, workers="count = 2", stt=stt)
    with Service(home, settings, "tests.acceptance.faulty_supervisor") as service:
        yield service


@pytest.fixture
def service(faulty: Service, model: FakeModel) -> Iterator[Service]:
    """One for all: every test leaves it as alive as it found it, and no log has the words of a person."""
    pid = faulty.status()["pid"]
    yield faulty
    session = f"after {secrets.token_hex(4)}"
    faulty.say(session, "still there?")
    assert faulty.listen(session).ending(f"{session}/1").type == "turn.done"
    assert faulty.status()["pid"] == pid
    assert SECRET not in faulty.log()


def contained(service: Service, place: str) -> int:
    """How many exceptions were contained at a place."""
    (row,) = [row for row in service.show("metrics") if row["name"] == "hermes_contained_total"]
    return int(sum(each["value"] for each in row["samples"] if each["labels"]["place"] == place))


def refused(service: Service, ask: object) -> CommandError:
    client = service.client()
    with pytest.raises(CommandError) as error:
        client.ask(ask, Table if isinstance(ask, Show | Care) else Accepted)  # type: ignore[arg-type]
    return error.value


@pytest.mark.parametrize(
    "ask",
    [
        Show("turns", session="bad view"),
        Submit("bad request", "hello", "key"),
        Submit("bad lookup", "hello", "key"),
        Interrupt("bad answer", "me"),
        Care("stats"),
    ],
    ids=lambda ask: type(ask).__name__ + getattr(ask, "act", getattr(ask, "session", "")),
)
def test_a_request_that_meets_a_defect_is_refused_by_name(service: Service, ask: object) -> None:
    before = contained(service, "request")
    fault = refused(service, ask)
    assert fault.fault == "an internal error (Defect)"
    assert "hermesctl logs" in fault.hint
    assert fault.code == 5
    assert contained(service, "request") == before + 1
    trace = service.log().rpartition("contained place=request")[2]
    assert "error=Defect" in trace
    assert "faulty_supervisor.py" in trace
    assert any("internal errors since the start" in hint for hint in service.status()["hints"])


def test_such_requests_are_served_as_often_as_any(service: Service) -> None:
    """None of them is left counted as under way."""
    for _ in range(10):
        assert refused(service, Care("stats")).fault == "an internal error (Defect)"
    assert service.hermesctl("journal", "check").returncode == 0


def test_a_turn_that_cannot_be_handed_over_fails_alone_and_at_once(service: Service) -> None:
    before = contained(service, "turn")
    service.say("bad turn", "hello")
    service.say("good turn", "hello")
    listener = service.listen("bad turn")
    ending = listener.ending("bad turn/1")
    assert ending.type == "turn.failed"
    assert ending.fields["error"] == "it could not be given to a worker: an internal error (Defect)"
    assert not ending.fields["poison"]
    assert service.listen("good turn").ending("good turn/1").type == "turn.done"
    assert contained(service, "turn") == before + 1
    assert listener.of_type("attempt.lost") == [], "no worker was to blame"
    until(lambda: worker_states(service, "bad turn") == ["idle"])


def worker_states(service: Service, session: str) -> list[str]:
    return [row["state"] for row in service.show("workers") if row["session"] == session]


def test_a_worker_whose_frame_meets_a_defect_is_ended_by_name(service: Service) -> None:
    service.say("good stream", "[[slow interval=0.02 count=100]] go")
    good = service.listen("good stream")
    service.say("bad worker", "hello")
    listener = service.listen("bad worker")
    ending = listener.ending("bad worker/1", 60)
    assert ending.type == "turn.failed"
    assert ending.fields["poison"]
    for lost in listener.of_type("attempt.lost"):
        assert lost.fields["reason"] == "it sent a frame that cannot be served: an internal error (Defect)"
    assert len(listener.of_type("attempt.lost")) == 3
    assert good.ending("good stream/1").type == "turn.done"
    assert good.of_type("attempt.lost") == []
    assert contained(service, "worker") >= 3


def test_what_the_journal_cannot_hold_costs_the_turn_and_no_commit_of_others(service: Service) -> None:
    service.say("good neighbour", "[[slow interval=0.02 count=100]] go")
    good = service.listen("good neighbour")
    service.say("bad number", "hello")
    listener = service.listen("bad number")
    ending = listener.ending("bad number/1", 60)
    assert ending.type == "turn.failed"
    assert ending.fields["poison"]
    reason = "it sent a frame that cannot be kept: an internal error (OverflowError)"
    assert [lost.fields["reason"] for lost in listener.of_type("attempt.lost")] == [reason] * 3
    assert good.ending("good neighbour/1").type == "turn.done"
    assert good.of_type("attempt.lost") == []


def test_a_service_whose_frame_meets_a_defect_starts_again(service: Service) -> None:
    until(lambda: contained(service, "service") == 1)
    until(lambda: service.show("services")[0]["restarts"] == 1)
    until(lambda: service.show("services")[0]["state"] == "ready")


def test_a_follower_that_meets_a_defect_is_cut_and_the_other_hears_it_all(service: Service) -> None:
    session = f"followed {secrets.token_hex(4)}"
    with RawClient(service.places) as bad:
        bad.post(BAD_FOLLOW, frame({"t": "subscribe", "session": session}))
        assert bad.receive() is not None
        good = service.listen(session)
        service.say(session, "hello")
        assert good.ending(f"{session}/1").type == "turn.done"
        heard: list[Answer] = []
        while not heard or not isinstance(heard[-1], Cut):
            arrived = bad.receive(DEADLINE_SECONDS)
            assert arrived is not None
            heard.append(arrived[1])
    assert heard[-1] == Cut("an internal error (Defect)")
    assert "turn.done" not in [each.type for each in heard if isinstance(each, Event)]
    assert contained(service, "follower") >= 1


def test_a_clip_that_cannot_be_handed_over_ends_its_message(service: Service) -> None:
    until(lambda: service.show("services")[0]["state"] == "ready")
    sound = service.home / "sound.ogg"
    sound.write_bytes(b"OggS")
    sent = service.hermesctl("send", "bad clip", "--audio", str(sound))
    assert sent.returncode == 4
    assert "an internal error (Defect)" in sent.stderr
    assert contained(service, "clip") == 1


def test_a_callback_that_belongs_to_nobody_is_noted(service: Service) -> None:
    before = contained(service, "loop")
    service.show("turns", session="bad callback")
    until(lambda: contained(service, "loop") == before + 1)


def test_a_defect_of_the_rules_ends_the_process_and_the_next_life_goes_on(
    service: Service, model: FakeModel
) -> None:
    """The one thing that is not contained. It comes last: the service is another process afterwards."""
    home = service.home.parent / "vital"
    with Service(
        home, settings_for(model, workers="count = 1"), "tests.acceptance.faulty_supervisor"
    ) as vital:
        vital.say("kept", "hello")
        vital.listen("kept").ending("kept/1")
        assert vital.process is not None
        client = Client(vital.places)
        client.post(Submit("bad rule", "hello", "key"))
        assert vital.process.wait(DEADLINE_SECONDS) == 1
        client.close()
        assert "engine.failed error=Defect trace=" in vital.log()
        assert SECRET not in vital.log()
        vital.start()
        assert [row["turn"] for row in vital.show("turns")] == ["kept/1"]
