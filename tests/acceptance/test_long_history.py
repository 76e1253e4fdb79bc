"""A turn that produced more than a frame holds is followed by another one like any other."""

import time
from pathlib import Path
from typing import Any

from supervisor.core.model import Who
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    MessageAccepted,
    Record,
    ToolCallFinished,
    ToolCallStarted,
    TurnDone,
    TurnOpened,
)
from supervisor.journal.journal import Journal
from tests.fake_model import FakeModel
from tests.service import Service, settings_for

CALLS = 150
# What one shell command may give at most, of a hundred and fifty: more than nine megabytes.
RESULT = "x" * 64_000


def long_turn(session: str, at: float, *, is_done: bool) -> list[Record]:
    """A turn with nine megabytes of tool output: answered, or cut off by a crash."""
    told: dict[str, Any] = {"session": session, "at": at}
    turn: dict[str, Any] = told | {"turn": f"{session}/1"}
    accepted = MessageAccepted(
        **told, seq=1, message=f"m_{session}", key="k", kind="text", text="go", busy="queue"
    )
    records: list[Record] = [
        accepted,
        TurnOpened(**turn, seq=2, number=1, messages=(accepted.message,)),
        AttemptOpened(**turn, seq=3, attempt=1, who=Who(1, 0, 1), pid=1),
    ]
    for number in range(CALLS):
        call: dict[str, Any] = turn | {"attempt": 1, "call": f"c{number}", "name": "shell"}
        seq = 4 + 2 * number
        records.append(
            ToolCallStarted(**call, seq=seq, summary="cat", arguments="{}", repeat="unsafe", offset=0)
        )
        records.append(ToolCallFinished(**call, seq=seq + 1, ok=True, ms=1, result=RESULT))
    seq = 4 + 2 * CALLS
    if is_done:
        records.append(TurnDone(**turn, seq=seq, attempt=1, text="Done.", input_tokens=1, output_tokens=1))
    else:
        records.append(AttemptLost(**turn, seq=seq, attempt=1, reason="the supervisor ended", losses=1))
    return records


def test_h16_nine_megabytes_of_tool_output_and_then_a_message(tmp_path: Path, model: FakeModel) -> None:
    service = Service(tmp_path / "home", settings_for(model, workers="count = 1"))
    journal = Journal.open(service.places.journal, service.places.lock)
    journal.commit_now(long_turn("done", time.time(), is_done=True))
    journal.commit_now(long_turn("cut", time.time(), is_done=False))
    journal.close()
    with service:
        resumed = service.listen("cut").ending("cut/1", 60)
        assert resumed.type == "turn.done", resumed.fields
        service.say("done", "and now?")
        ending = service.listen("done").ending("done/2", 60)
        assert ending.type == "turn.done", ending.fields
        assert ending.fields["text"] == "You said: and now?"
        shown = model.requests()[-1].messages
    told = "".join(str(message["content"]) for message in shown)
    assert "earlier tool calls left out" in told
    assert "xxxx" in told
