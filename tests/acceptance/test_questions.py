"""An agent asks a human: nothing runs and nothing is held meanwhile, and the answer finds its turn again."""

import json
import os
import shlex
import signal
from collections.abc import Callable
from typing import Any

from ipc.messages import Event
from tests.acceptance.sight import named, sleeper, worker_of
from tests.fake_model import FakeModel
from tests.service import Listener, Service
from tests.waiting import until

COLOUR = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}


def asking(*rounds: list[dict[str, Any]]) -> str:
    """What to say so that the fake model makes these calls, round by round, and then says `Done.`"""
    calls = json.dumps(rounds or [[COLOUR]]).replace("]]", "] ]")
    return f"[[tools calls={shlex.quote(calls)}]] paint it"


def ask(service: Service, session: str = "demo", text: str | None = None) -> tuple[Listener, Event]:
    """A session whose turn waits for a human, and the question."""
    service.say(session, text or asking())
    listener = service.listen(session)
    listener.until(lambda: listener.of_type("question.asked"))
    return listener, listener.of_type("question.asked")[0]


def results(model: FakeModel) -> list[str]:
    """What the model was last shown as the results of its calls."""
    return [message["content"] for message in model.requests()[-1].messages if message["role"] == "tool"]


def test_an_answer_becomes_the_result_of_the_call_that_asked(service: Service, model: FakeModel) -> None:
    listener, asked = ask(service)
    assert asked.fields == {
        "turn": "demo/1",
        "question": "demo/1#1",
        "kind": "clarify",
        "text": "Which colour?",
        "choices": ["red", "blue"],
        "offset": 0,
    }
    (row,) = json.loads(service.hermesctl("turns", "--json", "--state", "asking").stdout)
    assert (row["turn"], row["worker"]) == ("demo/1", None)
    assert service.status()["questions"]["open"] == 1
    assert "questions 1 open, the oldest for" in service.hermesctl("status").stdout
    answered = service.hermesctl("answer", "demo/1#1", "the blue one")
    assert answered.stdout == "demo/1#1 is answered with “the blue one”: demo/1 goes on\n", answered.stderr
    assert listener.ending("demo/1").fields["text"] == "Done."
    assert service.status()["questions"] == {"open": 0, "oldest_seconds": None}
    roles = [message["role"] for message in model.requests()[-1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert results(model) == ["the blue one"]
    assert service.hermesctl("answer", "demo/1#1", "too late").returncode == 5
    model.set_mode("normal")
    service.hermesctl("send", "demo", "thank you")
    assert [message["role"] for message in model.requests()[-1].messages] == [*roles, "assistant", "user"]


def test_a_plain_message_answers_the_open_question(service: Service, model: FakeModel) -> None:
    ask(service)
    sent = service.hermesctl("send", "demo", "blue", "--busy", "interrupt")
    assert (sent.returncode, sent.stdout) == (0, "Done.\n"), sent.stderr
    assert results(model) == ["blue"]
    assert [row["turn"] for row in service.show("turns")] == ["demo/1"]


def test_a_turn_may_ask_again_and_again(service: Service, model: FakeModel) -> None:
    brush = {"name": "ask", "arguments": {"question": "Which brush?"}}
    listener, _ = ask(service, text=asking([COLOUR, brush], [brush]))
    service.hermesctl("answer", "demo/1#1", "blue")
    listener.until(lambda: len(listener.of_type("question.asked")) == 2)
    assert [row["question"] for row in service.show("questions")] == ["demo/1#2"]
    service.hermesctl("approve", "demo/1#2")
    assert listener.ending("demo/1").type == "turn.done"
    first, second, third = results(model)
    assert first.startswith("not asked: another question was asked first")
    assert (second, third) == ("blue", "yes")


def test_nothing_that_an_attempt_started_lives_while_it_asks(service: Service, model: FakeModel) -> None:
    mark = f"work-{os.urandom(6).hex()}"
    start = {"name": "shell", "arguments": {"action": "start", "command": sleeper(mark)}}
    listener, _ = ask(service, text=asking([COLOUR, start]))
    assert named(mark) == set()
    service.hermesctl("answer", "demo/1#1", "blue")
    assert listener.ending("demo/1").type == "turn.done"
    assert results(model) == ["started in the background as b1", "blue"]


def test_a12_an_interrupt_withdraws_the_question(service: Service, model: FakeModel) -> None:
    listener, asked = ask(service)
    assert service.interrupt("demo").turns == ("demo/1",)
    assert listener.ending("demo/1").type == "turn.interrupted"
    assert listener.ending("demo/1").fields["killed"]["all_dead"]
    assert service.show("questions") == []
    late = service.hermesctl("answer", asked.fields["question"], "blue")
    assert late.returncode == 5
    assert "question demo/1#1 is not open" in late.stderr
    assert service.hermesctl("send", "demo", "hello").stdout == "You said: hello\n"
    assert len(model.requests()) == 2
    assert results(model)[0].startswith("no result")


def test_d4_after_a_kill_the_same_question_stands_and_its_answer_goes_on(
    service: Service, model: FakeModel
) -> None:
    listener, _ = ask(service)
    before = service.show("questions")
    service.kill()
    service.start()
    assert service.show("questions") == before
    assert [row["state"] for row in service.show("turns")] == ["asking"]
    assert len(model.requests()) == 1
    again = service.listen("demo", after=listener.events[-1].seq)
    service.hermesctl("answer", "demo/1#1", "blue")
    assert again.ending("demo/1").type == "turn.done"
    assert again.types() == ["question.answered", "attempt.opened", "turn.done"]
    assert results(model) == ["blue"]


def test_d4_an_approved_command_runs_once_on_another_worker_after_a_kill(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(**{"agents.default": 'ask = ["shell(touch *)"]\ndeny = ["shell(rm *)"]'})
    calls = [
        {"name": "shell", "arguments": {"command": each}} for each in ("rm x", "touch made", "echo hello")
    ]
    # The host makes the approved call, which counts as the second round.
    listener, asked = ask(service, text=asking(calls, [calls[1]], [calls[1]]))
    assert (asked.fields["kind"], asked.fields["choices"]) == ("approve", ["yes", "no", "always"])
    assert asked.fields["text"].endswith("\ntouch made")
    service.kill()
    service.start()
    again = service.listen("demo", after=listener.events[-1].seq)
    assert service.hermesctl("approve", "demo/1#1").returncode == 0
    assert again.ending("demo/1").type == "turn.done"
    # The same call, made by the model, needs no further question.
    assert [each.fields["name"] for each in again.of_type("tool.started")] == ["shell", "shell"]
    assert again.of_type("question.asked") == []
    denied, echoed, approved, made, made_again = results(model)
    assert denied == "denied by a rule of [agents.default]; it was not run"
    assert echoed == "[exit status 0]\nhello\n"
    assert approved == "approved by the user; it has not run yet"
    assert made == made_again == "[exit status 0]\n(no output)"


def test_e3_who_waits_for_a_human_holds_no_seat(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    waiting = [ask(service, name)[0] for name in ("a", "b", "c")]
    for name in ("d", "e"):
        sent = service.hermesctl("send", name, "hello")
        assert sent.stdout == "You said: hello\n", sent.stderr
    until(lambda: service.status()["idle"] == 1)
    status = service.status()
    assert (status["asking"], status["running"], status["queued"]) == (3, 0, 0)
    for listener, row in zip(waiting, service.show("questions"), strict=True):
        assert service.hermesctl("answer", row["question"], "blue").returncode == 0
        assert listener.ending(row["turn"]).type == "turn.done"


def cut_off(make_service: Callable[..., Service]) -> tuple[Service, Listener]:
    """A service that asks before it resumes, killed in the middle of an answer and back again."""
    service = make_service(turns='resume = "ask"')
    service.say("demo", "[[slow interval=0.02 count=40]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word5" in listener.words)
    service.kill()
    service.start()
    again = service.listen("demo", after=listener.events[-1].seq)
    again.until(lambda: again.of_type("question.asked"))
    return service, again


def test_with_resume_ask_a_human_lets_the_turn_go_on(make_service: Callable[..., Service]) -> None:
    service, listener = cut_off(make_service)
    assert listener.types() == ["attempt.lost", "question.asked"]
    assert listener.of_type("question.asked")[0].fields["kind"] == "approve"
    assert service.hermesctl("approve", "demo/1#1").returncode == 0
    assert listener.ending("demo/1").type == "turn.done"


def test_with_resume_ask_a_human_may_leave_it_and_retry_later(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service, listener = cut_off(make_service)
    denied = service.hermesctl("deny", "demo/1#1")
    follows = "demo/1 does not go on; `hermesctl retry demo/1` takes it up after all"
    assert denied.stdout == f"demo/1#1 is answered with “no”: {follows}\n"
    ended = listener.ending("demo/1")
    assert ended.type == "turn.failed"
    assert "`hermesctl retry demo/1`" in ended.fields["hint"]
    retried = service.hermesctl("retry", "demo/1")
    assert (retried.returncode, retried.stdout.split()[-1]) == (0, "word39"), retried.stderr
    assert [row["state"] for row in service.show("turns")] == ["done", "failed"]


def test_a_failed_turn_is_retried(service: Service, model: FakeModel) -> None:
    model.set_mode("400")
    assert service.hermesctl("send", "demo", "hello").returncode == 4
    model.set_mode("normal")
    retried = service.hermesctl("retry", "demo/1")
    assert (retried.returncode, retried.stdout) == (0, "You said: hello\n"), retried.stderr
    refused = service.hermesctl("retry", "demo/2")
    assert refused.returncode == 5
    assert "turn demo/2 is done" in refused.stderr
    assert service.hermesctl("retry", "demo/9").returncode == 5


def test_a_poison_turn_is_found_and_retried(make_service: Callable[..., Service], model: FakeModel) -> None:
    service = make_service(turns="attempts_max = 1")
    model.set_mode("stall")
    service.say("demo", "hello")
    listener = service.listen("demo")
    listener.until(lambda: "word2" in listener.words)
    os.kill(worker_of(service, "demo"), signal.SIGKILL)
    assert listener.ending("demo/1").fields["poison"]
    model.set_mode("400")
    assert service.hermesctl("send", "demo", "not poison").returncode == 4
    model.set_mode("normal")
    poison = json.loads(service.hermesctl("turns", "--state", "poison", "--json").stdout)
    assert [row["turn"] for row in poison] == ["demo/1"]
    assert service.hermesctl("retry", "demo/1", "--no-wait").stdout.startswith("m_")
    assert listener.ending("demo/3").fields["text"] == "You said: hello"
