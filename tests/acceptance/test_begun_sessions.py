"""Sessions that begin with a history: imported, or copied from another session through one of its turns."""

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Begin, Done, Exchange
from tests.fake_model import FakeModel
from tests.service import Service


def told(model: FakeModel) -> list[tuple[str, str]]:
    """What the model was told last, without the system's part."""
    messages = model.requests()[-1].messages
    return [(str(each["role"]), str(each["content"])) for each in messages if each["role"] != "system"]


def say(service: Service, session: str, text: str, number: int) -> None:
    listener = service.listen(session)
    service.say(session, text)
    listener.ending(f"{session}/{number}")


def test_an_imported_history_is_told_before_own_turns(service: Service, model: FakeModel) -> None:
    begin = Begin("chat", "k", (Exchange("Who are you?", "A poet."), Exchange("Prove it.", "Roses.")))
    assert "begins with 2 turns" in service.client().ask(begin, Done).note
    assert "has begun already" in service.client().ask(begin, Done).note
    say(service, "chat", "[[normal text=Violets.]] More.", 1)
    say(service, "chat", "[[normal text=Sugar.]] And more.", 2)
    assert told(model) == [
        ("user", "Who are you?"),
        ("assistant", "A poet."),
        ("user", "Prove it."),
        ("assistant", "Roses."),
        ("user", "[[normal text=Violets.]] More."),
        ("assistant", "Violets."),
        ("user", "[[normal text=Sugar.]] And more."),
    ]
    listener = service.listen("chat")
    listener.until(lambda: listener.events)
    assert (listener.events[0].seq, listener.events[0].type) == (1, "session.begun")
    assert listener.events[0].fields == {"from": "", "through": 0, "turns": 2}
    rows = service.show("history", session="chat")
    assert [(row["state"], row["text"]) for row in rows] == [
        ("done", "Sugar."), ("done", "Violets."), ("past", "Roses."), ("past", "A poet."),
    ]  # fmt: skip
    with pytest.raises(CommandError, match="exists already"):
        service.client().ask(Begin("chat", "other", (Exchange("a", "b"),)), Done)


def test_a_fork_has_the_history_through_its_turn_and_survives_a_crash(
    service: Service, model: FakeModel
) -> None:
    service.client().ask(Begin("chat", "k", (Exchange("Zero?", "0"),)), Done)
    for number, answer in enumerate(("1", "2", "3"), start=1):
        say(service, "chat", f"[[normal text={answer}]]", number)
    fork = Begin("fork", "k", from_session="chat", through_turn=2)
    service.client().ask(fork, Done)
    service.kill()
    service.start()
    assert "has begun already" in service.client().ask(fork, Done).note
    say(service, "fork", "[[normal text=other]]", 1)
    assert [text for role, text in told(model) if role == "assistant"] == ["0", "1", "2"]
    again = Begin("fork of the fork", "k", from_session="fork", through_turn=1)
    service.client().ask(again, Done)
    say(service, "fork of the fork", "[[normal]]", 1)
    assert [text for role, text in told(model) if role == "assistant"] == ["0", "1", "2", "other"]
    service.client().ask(Begin("only the import", "k", from_session="chat"), Done)
    say(service, "only the import", "[[normal]]", 1)
    assert [text for role, text in told(model) if role == "assistant"] == ["0"]


def test_a_fork_has_the_tool_calls_too(service: Service, model: FakeModel) -> None:
    say(service, "chat", """[[tools name=shell arguments='{"command": "echo it"}']] work""", 1)
    service.client().ask(Begin("fork", "k", from_session="chat", through_turn=1), Done)
    say(service, "chat", "[[normal]]", 2)
    own = model.requests()[-1].messages[1:-1]
    say(service, "fork", "[[normal]]", 1)
    assert model.requests()[-1].messages[1:-1] == own
    assert any(each["role"] == "tool" for each in own)
