"""What is told of a turn becomes one tree of spans, and holds nobody's words."""

from typing import Any

import pytest

from hermesctl import spans
from hermesctl.spans import Span, Spans
from ipc.messages import Event


class Feed:
    """Events, a second apart."""

    def __init__(self) -> None:
        self.spans = Spans()
        self.seq = 0

    def tell(self, type: str, **fields: Any) -> Span | None:
        self.seq += 1
        return self.spans.told(Event(self.seq, "s", type, float(self.seq), fields))


def shape(span: Span) -> str:
    inner = " ".join(map(shape, span.inner))
    return f"{span.name}@{span.start:g}-{span.end:g}" + (f"({inner})" if inner else "")


def test_a_turn_with_a_loss_a_tool_and_a_question_is_one_tree() -> None:
    feed = Feed()
    feed.tell("message.accepted", message="m1", kind="text", text="secret")
    feed.tell("turn.opened", turn="s/1", messages=["m1"])
    feed.tell("attempt.opened", turn="s/1", attempt=1, worker=0, pid=7)
    feed.tell("tool.started", turn="s/1", call="c1", name="shell", summary="secret")
    feed.tell("attempt.lost", turn="s/1", attempt=1, reason="it died")
    feed.tell("attempt.opened", turn="s/1", attempt=2, worker=1, pid=8)
    feed.tell("tool.started", turn="s/1", call="c2", name="shell", summary="secret")
    feed.tell("tool.finished", turn="s/1", call="c2", name="shell", ok=False, ms=3)
    feed.tell("question.asked", turn="s/1", question="s/1#1", text="secret")
    feed.tell("question.answered", turn="s/1", question="s/1#1", text="secret")
    feed.tell("attempt.opened", turn="s/1", attempt=3, worker=1, pid=8)
    usage = {"input_tokens": 7, "output_tokens": 3}
    turn = feed.tell("turn.done", turn="s/1", text="secret", usage=usage)
    assert turn is not None
    assert shape(turn) == (
        "turn@1-12(wait@1-2 queue@2-3 attempt 1@3-5(tool shell@4-5) queue@5-6 "
        "attempt 2@6-9(tool shell@7-8) ask@9-10 queue@10-11 attempt 3@11-12)"
    )
    assert turn.attributes == {
        "hermes.session": "s",
        "hermes.turn": "s/1",
        "hermes.outcome": "done",
        "hermes.input_tokens": 7,
        "hermes.output_tokens": 3,
    }
    assert [span.is_fault for span in turn.inner] == [False, False, True, False, False, False, False, False]
    assert turn.inner[4].inner[0].is_fault
    assert "secret" not in repr(turn)


def test_a_clip_is_transcribed_before_its_turn_and_one_without_words_leaves_nothing() -> None:
    feed = Feed()
    feed.tell("message.accepted", message="m1", kind="voice", text="")
    feed.tell("message.accepted", message="m2", kind="voice", text="")
    feed.tell("transcript.failed", message="m2", reason="silence", hint="")
    feed.tell("transcript.ready", message="m1", text="secret", echo=True)
    feed.tell("turn.opened", turn="s/1", messages=["m1"])
    killed = {"processes": 2, "all_dead": True, "ms": 4.0, "how": "pidns"}
    turn = feed.tell("turn.interrupted", turn="s/1", by="m3", partial="secret", killed=killed)
    assert turn is not None
    assert shape(turn) == "turn@1-6(transcribe@1-4 queue@5-6)"
    assert turn.attributes["hermes.killed_processes"] == 2


def test_what_was_begun_before_anybody_listened_is_not_told() -> None:
    feed = Feed()
    assert feed.tell("attempt.opened", turn="s/1", attempt=1, worker=0, pid=7) is None
    assert feed.tell("turn.done", turn="s/1", text="", usage={}) is None


def test_calls_that_run_side_by_side_end_each_at_its_own_time() -> None:
    feed = Feed()
    feed.tell("turn.opened", turn="s/1", messages=["m1"])
    feed.tell("attempt.opened", turn="s/1", attempt=1, worker=0, pid=7)
    for call in ("c1", "c2"):
        feed.tell("tool.started", turn="s/1", call=call, name=call, summary="")
    feed.tell("tool.finished", turn="s/1", call="c2", name="c2", ok=False, ms=3)
    feed.tell("tool.finished", turn="s/1", call="c1", name="c1", ok=True, ms=3)
    turn = feed.tell("turn.done", turn="s/1", text="", usage={})
    assert turn is not None
    assert shape(turn) == "turn@1-7(queue@1-2 attempt 1@2-7(tool c1@3-6 tool c2@4-5))"
    assert [tool.is_fault for tool in turn.inner[1].inner] == [False, True]


@pytest.mark.parametrize(("ending", "is_fault"), [("done", False), ("interrupted", False), ("failed", True)])
def test_a_turn_is_told_once_and_only_a_failure_is_a_fault(ending: str, is_fault: bool) -> None:
    feed = Feed()
    feed.tell("turn.opened", turn="s/1", messages=["m1"])
    turn = feed.tell(f"turn.{ending}", turn="s/1")
    assert turn is not None
    assert turn.is_fault is is_fault
    assert feed.tell(f"turn.{ending}", turn="s/1") is None


def test_a_message_that_joins_a_turn_has_waited_too() -> None:
    feed = Feed()
    feed.tell("message.accepted", message="m1", kind="text")
    feed.tell("message.accepted", message="m2", kind="text")
    feed.tell("turn.opened", turn="s/1", messages=["m1"])
    feed.tell("turn.joined", turn="s/1", messages=["m2"])
    turn = feed.tell("turn.done", turn="s/1", text="", usage={})
    assert turn is not None
    assert shape(turn) == "turn@1-5(wait@1-3 wait@2-4 queue@3-5)"


def test_what_never_ends_is_forgotten_from_the_oldest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_OPEN_MAX", 3)
    feed = Feed()
    for number in range(1, 5):
        feed.tell("turn.opened", turn=f"s/{number}", messages=[])
    told = [feed.tell("turn.done", turn=f"s/{number}", text="", usage={}) for number in range(1, 5)]
    assert [turn is None for turn in told] == [True, False, False, False]
