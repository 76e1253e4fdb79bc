"""The tool calls of the running attempt: recorded before they run, and again with their result."""

from supervisor.core.decision import Draft
from supervisor.core.events import ToolFinished, ToolStarted
from supervisor.core.records import ToolCallFinished, ToolCallStarted
from supervisor.core.state import Session, Turn


def started(draft: Draft, session: Session, turn: Turn, event: ToolStarted) -> None:
    attempt = turn.attempt
    assert attempt is not None
    attempt.calls[event.call] = event.name
    turn.content_at = draft.now
    attempt.spend(event.input_tokens, event.output_tokens, event.cost)
    draft.tell(
        session,
        ToolCallStarted,
        turn=turn.id,
        attempt=attempt.number,
        call=event.call,
        name=event.name,
        summary=event.summary,
        arguments=event.arguments,
        repeat=event.repeat,
        offset=event.offset,
        **attempt.spent,
    )


def finished(draft: Draft, session: Session, turn: Turn, event: ToolFinished) -> None:
    attempt = turn.attempt
    assert attempt is not None
    name = attempt.calls.pop(event.call, None)
    if name is None:
        return
    turn.content_at = draft.now
    draft.tell(
        session,
        ToolCallFinished,
        turn=turn.id,
        attempt=attempt.number,
        call=event.call,
        name=name,
        ok=event.ok,
        ms=event.ms,
        result=event.result,
        exit=event.exit,
        signal=event.signal,
    )
