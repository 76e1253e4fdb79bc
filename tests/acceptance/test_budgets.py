"""Budgets: before a model call beyond a limit the turn asks, and a yes allows the same amount again."""

import json
import shlex
from pathlib import Path

from tests.fake_model import FakeModel
from tests.service import Listener, Service

SETTINGS = """
[model]
base_url = "{}"
name = "fake"
price_in = 1_000_000
price_out = 1_000_000
[stt]
engine = "off"
[workers]
count = 2
"""
LOOK = "[[tools calls={}]] look"
# Its reply is said to use 1000 tokens of input and as many of output; others use some tens.
EXPENSIVE = "[[usage tokens=1000]] hello"


def looking(*commands: str) -> str:
    """What to say so that the fake model runs these commands, one a round, and then says `Done.`"""
    rounds = [[{"name": "shell", "arguments": {"command": command}}] for command in commands]
    return LOOK.format(shlex.quote(json.dumps(rounds).replace("]]", "] ]")))


def asked(listener: Listener, count: int) -> dict[str, str]:
    """The question number `count` of the session."""
    listener.until(lambda: len(listener.of_type("question.asked")) == count)
    return listener.of_type("question.asked")[-1].fields


def service_with(tmp_path: Path, model: FakeModel, budgets: str) -> Service:
    return Service(tmp_path / "home", SETTINGS.format(model.base_url) + budgets)


def test_a_turn_asks_before_the_call_beyond_its_budget_and_goes_on_with_a_yes(
    tmp_path: Path, model: FakeModel
) -> None:
    with service_with(tmp_path, model, "[budgets.turn]\ntokens_max = 1\n") as service:
        listener = service.listen("demo")
        service.say("demo", looking("echo one"))
        text = asked(listener, 1)["text"]
        assert text.startswith("This turn has reached ")
        assert "[budgets.turn] tokens_max allows 1 tokens. Go on, up to " in text
        # The first reply has come and its command has run; the second was not asked for.
        assert len(model.requests()) == 1
        assert len(listener.of_type("tool.finished")) == 1
        assert service.hermesctl("approve", "demo/1#1").returncode == 0
        done = listener.ending("demo/1")
        assert (done.type, done.fields["text"]) == ("turn.done", "Done.")
        assert len(model.requests()) == 2
        assert len(listener.of_type("tool.started")) == 1
        assert len(listener.of_type("question.asked")) == 1


def test_a_no_ends_the_turn_with_its_reason(tmp_path: Path, model: FakeModel) -> None:
    with service_with(tmp_path, model, "[budgets.turn]\ncost_max = 0.5\n") as service:
        listener = service.listen("demo")
        service.say("demo", looking("echo one"))
        question = asked(listener, 1)
        assert "[budgets.turn] cost_max allows a cost of 0.5." in question["text"]
        assert service.hermesctl("deny", question["question"]).returncode == 0
        failed = listener.ending("demo/1")
        assert failed.type == "turn.failed"
        assert failed.fields["error"].endswith(", and the answer was not to go on")
        assert failed.fields["hint"].startswith("raise [budgets.turn] cost_max in hermes.toml")
        # The one reply is told with its cost, and nothing else was asked for.
        usage = failed.fields["usage"]
        assert usage["cost"] == usage["input_tokens"] + usage["output_tokens"] > 0
        assert len(model.requests()) == 1
        assert service.hermesctl("send", "other", "hello").stdout == "You said: hello\n"


def test_a_session_asks_at_the_first_call_of_a_turn_and_a_yes_holds_for_its_later_turns(
    tmp_path: Path, model: FakeModel
) -> None:
    with service_with(tmp_path, model, "[budgets.session]\ntokens_max = 2000\n") as service:
        assert service.hermesctl("send", "demo", EXPENSIVE).returncode == 0
        listener = service.listen("demo")
        service.say("demo", "again")
        text = asked(listener, 1)["text"]
        limit = "[budgets.session] tokens_max allows 2000 tokens"
        assert text == f"This session has reached 2000 tokens; {limit}. Go on, up to 4000 tokens?"
        assert len(model.requests()) == 1
        # Another session has a budget of its own.
        assert service.hermesctl("send", "other", "hello").stdout == "You said: hello\n"
        service.kill()
        service.start()
        assert service.hermesctl("approve", "demo/2#1").returncode == 0
        again = service.listen("demo")
        assert again.ending("demo/2").type == "turn.done"
        assert service.hermesctl("send", "demo", EXPENSIVE).returncode == 0
        service.say("demo", "more")
        again.until(lambda: len(again.of_type("question.asked")) == 2)
        assert (
            again.of_type("question.asked")[1]
            .fields["text"]
            .startswith("This session has reached 4000 tokens; ")
        )


def test_a_day_counts_all_sessions(tmp_path: Path, model: FakeModel) -> None:
    with service_with(tmp_path, model, "[budgets.day]\ncost_max = 2000\n") as service:
        assert service.hermesctl("send", "demo", EXPENSIVE).returncode == 0
        listener = service.listen("other")
        service.say("other", "hello")
        text = asked(listener, 1)["text"]
        assert text.startswith("The day ")
        assert "(UTC) has reached a cost of 2000; [budgets.day] cost_max allows a cost of 2000." in text
        assert service.hermesctl("approve", "other/1#1").returncode == 0
        assert listener.ending("other/1").type == "turn.done"
        # The consent is of the day, not of the session.
        assert service.hermesctl("send", "third", "hello").stdout == "You said: hello\n"


def test_a_third_identical_call_in_a_row_asks_before_it_runs(tmp_path: Path, model: FakeModel) -> None:
    with service_with(tmp_path, model, "") as service:
        listener = service.listen("demo")
        service.say("demo", looking("echo same", "echo same", "echo same"))
        question = asked(listener, 1)
        assert question["text"].startswith("shell is to run 3 times in a row with the same arguments: ")
        assert "echo same" in question["text"]
        assert len(listener.of_type("tool.started")) == 2
        assert service.hermesctl("approve", question["question"]).returncode == 0
        assert listener.ending("demo/1").type == "turn.done"
        assert len(listener.of_type("tool.finished")) >= 3
        assert len(listener.of_type("question.asked")) == 1
        service.say("demo", looking("echo same", "echo same", "echo same"))
        denied = asked(listener, 2)
        assert service.hermesctl("deny", denied["question"]).returncode == 0
        failed = listener.ending("demo/2")
        assert failed.type == "turn.failed"
        assert failed.fields["error"] == (
            "it called shell 3 times in a row with the same arguments, and the answer was not to go on"
        )
