"""What a message wants of its turn: an agent, instructions; and who sent or dropped it."""

from pathlib import Path

from ipc.messages import Accepted, Done, Queue, Retry
from tests.fake_model import FakeModel
from tests.service import Service, settings_for

AGENTS = """
[agents.poet]
instructions = "You rhyme."
[sessions."web*"]
instructions = "This is the web."
"""


def test_a_message_chooses_the_agent_and_adds_instructions_to_its_turn(
    tmp_path: Path, model: FakeModel
) -> None:
    settings = settings_for(model, workers="count = 2") + AGENTS
    with Service(tmp_path / "home", settings) as service:
        listener = service.listen("web")
        service.say("web", "[[normal text=One.]]", agent="poet", instructions="Be brief.", by="anna")
        listener.ending("web/1")
        service.say("web", "[[normal text=Two.]]")
        listener.ending("web/2")
        (accepted, plain) = listener.of_type("message.accepted")
        assert (accepted.fields["by"], accepted.fields["agent"]) == ("anna", "poet")
        assert not {"by", "agent", "instructions"} & plain.fields.keys()
        assert [opened.fields["agent"] for opened in listener.of_type("turn.opened")] == ["poet", "default"]
    first, second = (str(request.messages[0]["content"]) for request in model.requests())
    assert first.endswith("You rhyme.\n\nThis is the web.\n\nBe brief.")
    assert second.endswith("This is the web.")
    assert "rhyme" not in second


def test_a_wish_survives_a_crash_and_a_retry(tmp_path: Path, model: FakeModel) -> None:
    settings = settings_for(model, workers="count = 1") + AGENTS
    with Service(tmp_path / "home", settings) as service:
        listener = service.listen("web")
        service.say("web", "[[slow]] wait")
        listener.until(lambda: listener.of_type("attempt.opened"))
        service.say("web", "[[401]] hello", busy="queue", agent="poet", instructions="Be brief.")
        service.kill()
        service.start()
        service.interrupt("web")
        service._ask(Queue("web", "resume"), Done)
        again = service.listen("web")
        assert again.ending("web/2").type == "turn.failed"
        model.set_mode("normal")
        service._ask(Retry("web/2", "again"), Accepted)
        again.ending("web/3")
        opened = {event.fields["turn"]: event.fields["agent"] for event in again.of_type("turn.opened")}
        assert opened == {"web/1": "default", "web/2": "poet", "web/3": "poet"}
    for request in model.requests()[-2:]:
        assert str(request.messages[0]["content"]).endswith("You rhyme.\n\nThis is the web.\n\nBe brief.")


def test_a_dropped_message_names_who_dropped_it(service: Service, model: FakeModel) -> None:
    listener = service.listen("demo")
    service.say("demo", "[[slow]] wait")
    message = service.say("demo", "later", busy="queue").message
    service._ask(Queue("demo", "drop", message, by="anna"), Done)
    listener.until(lambda: listener.of_type("message.dropped"))
    assert listener.of_type("message.dropped")[0].fields == {"message": message, "by": "anna"}
