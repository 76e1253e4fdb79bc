"""A turn that produced more than a frame holds is followed by another one like any other."""

import time
from pathlib import Path
from typing import Any

from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    MessageAccepted,
    Record,
    ToolCallFinished,
    ToolCallStarted,
    TurnOpened,
)
from supervisor.core.state import Who
from supervisor.journal.journal import Journal
from tests.fake_model import FakeModel
from tests.service import Service, settings_for

CALLS = 150
# What one shell command may give at most, of a hundred and fifty: more than nine megabytes.
RESULT = "x" * 64_000


def cut_off(session: str, at: float) -> list[Record]:
    """A turn that a crash of the supervisor cut off after nine megabytes of tool output."""
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
    records.append(
        AttemptLost(**turn, seq=seq, attempt=1, reason=Reason(EndReason.SUPERVISOR_ENDED), losses=1)
    )
    return records


def shown(model: FakeModel) -> str:
    """All that the model was told with its latest request."""
    return "".join(str(message["content"]) for message in model.requests()[-1].messages)


def test_h16_nine_megabytes_of_tool_output_and_then_a_message(service: Service, model: FakeModel) -> None:
    """240 calls of the real tool, each with as much as it gives of one command."""
    calls = [{"name": "shell", "arguments": {"command": f"printf %040000d {digit}"}} for digit in (7, 8)]
    model.set_mode("tools", calls=[calls * 30] * 4)
    service.say("demo", "read it all")
    listener = service.listen("demo")
    assert listener.ending("demo/1", 60).type == "turn.done"
    assert len(listener.of_type("tool.finished")) == 240
    model.set_mode("normal")
    service.say("demo", "and now?")
    ending = listener.ending("demo/2", 60)
    assert ending.type == "turn.done", ending.fields
    assert ending.fields["text"] == "You said: and now?"
    assert "read it all" in shown(model)
    assert "tool calls left out" in shown(model)


def test_h16_an_attempt_behind_nine_megabytes_of_tool_output_is_resumed(
    tmp_path: Path, model: FakeModel
) -> None:
    service = Service(tmp_path / "home", settings_for(model, workers="count = 1"))
    journal = Journal.open(service.places.journal, service.places.lock)
    journal.commit_now(cut_off("cut", time.time()))
    journal.close()
    with service:
        resumed = service.listen("cut").ending("cut/1", 60)
        assert resumed.type == "turn.done", resumed.fields
        told = shown(model)
    assert "earlier tool calls left out" in told
    assert "xxxx" in told
