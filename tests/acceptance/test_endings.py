"""Answers of a model that end otherwise than usual, and models that think long before they say a word."""

from collections.abc import Callable

import pytest

from tests.fake_model import FakeModel
from tests.service import Service

# Without a sign of progress for so long, a turn is ended.
SILENCE = 'silence = "3s"'
# More than twice as long.
LONG = "interval=0.1"


@pytest.mark.parametrize(
    ("directive", "said", "finish", "shown"),
    [
        ("[[normal text=Half finish=length]]", "Half", "length", "the model's limit of length was reached"),
        (
            "[[normal text=Half finish=content_filter]]",
            "Half",
            "content_filter",
            "cut off by the server's content filter",
        ),
        ("[[refusal text=No.]]", "No.", "refusal", "the model declined to answer"),
    ],
    ids=["length", "content_filter", "refusal"],
)
def test_an_answer_says_why_it_ended(
    service: Service, directive: str, said: str, finish: str, shown: str
) -> None:
    sent = service.hermesctl("send", "demo", directive)
    assert (sent.returncode, sent.stdout) == (0, f"{said}\n")
    assert shown in sent.stderr
    ending = service.listen("demo").ending("demo/1")
    assert (ending.type, ending.fields["text"], ending.fields["finish"]) == ("turn.done", said, finish)


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        ("[[empty]]", "the model gave an empty answer"),
        ("[[empty thoughts=3]]", "the model thought (27 characters) and said nothing"),
        ("[[empty thoughts=3 finish=length]]", "limit of length was used up by thinking"),
    ],
    ids=["nothing", "thoughts", "length"],
)
def test_an_answer_without_a_word_is_a_failed_turn(service: Service, directive: str, reason: str) -> None:
    sent = service.hermesctl("send", "demo", directive)
    assert (sent.returncode, sent.stdout) == (4, "")
    assert reason in sent.stderr
    assert "hint: " in sent.stderr
    after = service.hermesctl("send", "demo", "and now?")
    assert after.stdout == "You said: and now?\n"


@pytest.mark.parametrize(
    ("directive", "answer", "note"),
    [
        (f"[[reasoning thoughts=70 {LONG} text=Fine.]]", "Fine.", "thinking… "),
        (
            f"""[[tools name=shell arguments='{{"command": "echo {"x" * 140}"}}' pieces=70 {LONG}]]""",
            "Done.",
            "writing a tool call… ",
        ),
    ],
    ids=["reasoning", "arguments"],
)
def test_a_model_that_works_longer_than_the_silence_is_not_taken_for_stuck(
    make_service: Callable[..., Service], model: FakeModel, directive: str, answer: str, note: str
) -> None:
    service = make_service(workers="count = 1", turns=SILENCE)
    listener = service.listen("demo")
    service.say("demo", directive)
    ending = listener.ending("demo/1", 60)
    assert (ending.type, ending.fields.get("text")) == ("turn.done", answer)
    assert listener.types().count("attempt.opened") == 1
    assert any(each.startswith(note) for each in listener.notes)
    service.say("demo", "what did you think?")
    listener.ending("demo/2", 60)
    assert "thought0" not in str(model.requests()[-1].messages)
    journal = b"".join(path.read_bytes() for path in service.home.rglob("journal.db*"))
    assert b"what did you think?" in journal
    assert b"thought0" not in journal
