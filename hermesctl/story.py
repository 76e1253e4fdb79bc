"""Events of a message or a turn as sentences with times; message texts only on request."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hermesctl.event_format import arguments, clock, command_end, finish, left, proof
from hermesctl.render import counted, one_line

_Fields = dict[str, Any]
# Fields that hold the text of a person or of an agent.
_TEXTS = ("text", "partial", "summary", "choices")


def without_texts(row: _Fields) -> _Fields:
    """The same row with every text replaced by its length."""
    return {
        name: f"({len(value)} characters)" if value and name in _TEXTS and isinstance(value, str) else value
        for name, value in row.items()
        if not (name in _TEXTS and isinstance(value, list | tuple))
    }


def sentences(rows: Sequence[_Fields]) -> Iterator[str]:
    """The first row is the current state; the others are the events, in order."""
    summary, *events = rows
    for event in events:
        say = _SENTENCES.get(str(event.get("type")), _anything)
        yield f"{clock(float(event['at']))} {one_line(say(event))}"
    yield one_line(_ending(summary))


def _ending(summary: _Fields) -> str:
    waits = f": {summary['waits']}" if summary.get("waits") else ""
    if summary.get("kind") == "turn":
        state = summary["state"]
        tries = f" after {summary['attempts']} attempts" if summary.get("attempts", 0) > 1 else ""
        return f"turn {summary['id']} is {state}{tries}{waits}"
    if summary.get("turn"):
        taken = f"message {summary['id']} was taken by turn {summary['turn']}"
        return f"{taken}, which is {summary['turn_state']}{waits}"
    return f"message {summary['id']} is {summary['state']}{waits}"


def _said(event: _Fields, name: str = "text") -> str:
    return f": {event[name]}" if event.get(name) else ""


def _anything(event: _Fields) -> str:
    known = ("seq", "session", "at", "type", *_TEXTS)
    rest = " ".join(f"{name}={value}" for name, value in event.items() if name not in known)
    return f"{event.get('type')} {rest}"


def _agent(event: _Fields) -> str:
    """Events of earlier versions do not name it."""
    return f" by agent {event['agent']}" if event.get("agent") else ""


def _process(event: _Fields) -> str:
    level = f", sandbox level {event['level']}" if event.get("level") else ""
    return f"pid {event['pid']}{level}"


def _attempt_lost(event: _Fields) -> str:
    return f"attempt {event.get('attempt')} was lost: {event.get('reason')}"


def _tool_started(event: _Fields) -> str:
    told = arguments(event.get("summary"))
    return f"tool {event.get('name')} started" + (f": {told}" if told else "")


def _tool_finished(event: _Fields) -> str:
    how = "finished" if event.get("ok") else "failed"
    status = f" ({ended})" if (ended := command_end(event)) else ""
    return f"tool {event.get('name')} {how}{status} after {event.get('ms')} ms"


def _done(event: _Fields) -> str:
    usage = event.get("usage") or {}
    remark = f"; {why}" if (why := finish(event)) else ""
    spent = counted(usage.get("output_tokens", 0), "token")
    model = f" by {event['model']}" if event.get("model") else ""
    return f"turn {event.get('turn')} was answered{model} ({spent}{remark}){_said(event)}"


def _interrupted(event: _Fields) -> str:
    said = f"; it had said {event['partial']}" if event.get("partial") else ""
    return f"turn {event.get('turn')} was interrupted by {event.get('by')}, {proof(event)}{said}"


_SENTENCES: dict[str, Callable[[_Fields], str]] = {
    "message.accepted": lambda e: f"message {e['message']} arrived ({e['kind']}, {e['busy']}){_said(e)}",
    "message.dropped": lambda e: f"message {e['message']} was dropped by {e['by']}",
    "transcript.ready": lambda e: f"message {e['message']} was understood{_said(e)}",
    "transcript.failed": lambda e: f"message {e['message']} could not be understood: {e.get('reason')}",
    "turn.opened": lambda e: f"turn {e['turn']} opened to answer {', '.join(e['messages'])}{_agent(e)}",
    "turn.joined": lambda e: f"before it began, turn {e['turn']} took in {', '.join(e['messages'])} as well",
    "attempt.opened": lambda e: f"attempt {e['attempt']} began on worker {e['worker']} ({_process(e)})",
    "attempt.stuck": lambda e: f"attempt {e['attempt']} {left(e)}",
    "attempt.lost": _attempt_lost,
    "tool.started": _tool_started,
    "tool.finished": _tool_finished,
    "question.asked": lambda e: f"it asked a question ({e.get('question')}){_said(e)}",
    "question.answered": lambda e: f"the question {e.get('question')} was answered{_said(e)}",
    "turn.steered": lambda e: f"the running agent took in message {e['message']}",
    "turn.done": _done,
    "turn.interrupted": _interrupted,
    "turn.failed": lambda e: f"turn {e['turn']} failed: {e['error']} (hint: {e['hint']})",
}
