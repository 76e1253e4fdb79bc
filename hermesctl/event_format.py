"""Formats events: as a line of JSON, and as a short description of each type."""

import re
import time
from collections.abc import Callable
from typing import Any

import msgspec

from hermesctl.neutral import json_text
from hermesctl.render import counted, cut, one_line
from ipc.messages import Delta, Done, Event, Noted

# Words of an answer that fit beside time, session and type.
_QUOTE_WIDTH = 60
_Fields = dict[str, Any]


def json_line(item: Event | Delta | Noted) -> str:
    return json_text(_plain(item))


def _plain(item: Event | Delta | Noted) -> _Fields:
    if isinstance(item, Event):
        common = {"seq": item.seq, "session": item.session, "type": item.type, "at": item.at}
        return common | {name: value for name, value in item.fields.items() if name not in common}
    if isinstance(item, Delta):
        place = {"turn": item.turn, "attempt": item.attempt, "offset": item.offset}
        return {"type": "delta", "session": item.session, **place, "text": item.text}
    return {
        "type": "note",
        "session": item.turn.rpartition("/")[0],
        "turn": item.turn,
        "attempt": item.attempt,
        "text": item.text,
        "call": item.call,
        "replaces": item.replaces,
    }


def clock(at: float) -> str:
    seconds, milliseconds = divmod(round(at * 1000), 1000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{milliseconds:03d}"


def gist(event: Event) -> str:
    """Describes the event for a person; unknown types show their fields."""
    say = _GISTS.get(event.type)
    return one_line(say(event.fields)) if say else _all_fields(event.fields)


def proof(fields: _Fields) -> str:
    """Describes how a turn was ended, from the fields of turn.interrupted."""
    killed = fields.get("killed") or {}
    count = killed.get("processes") or 0
    if not count:
        is_sure = killed.get("all_dead", True)
        return "nothing of it was running" if is_sure else "what an earlier life left of it is still there"
    noun = "process" if count == 1 else "processes"
    how = killed.get("how", "?")
    left = "some may be left"
    if killed.get("all_dead"):
        # Only the kernel can guarantee that none is left; other cells end the processes they find.
        left = "none left" if how == "pidns" else "none found"
    cancel = f", cancel {killed['cancel']}" if killed.get("cancel") else ""
    return f"{count} {noun} ended in {killed.get('ms', '?')} ms, {left} ({how}{cancel})"


def left(fields: _Fields) -> str:
    """Describes what a kill could not end, from the fields of attempt.stuck."""
    count, words = fields.get("processes") or 0, fields.get("words")
    noun = "1 process is" if count == 1 else f"{count} processes are"
    known = f"was killed, but {noun} still there: {words}" if count else f"has ended, but {words}"
    return f"{known}; its session is held until then"


def unwritten(done: Done) -> list[str]:
    """Describes an interrupt that is not in the journal yet: a line for each turn, then the reason."""
    killed = {one_line(each.turn): proof({"killed": msgspec.to_builtins(each)}) for each in done.killed}
    turns = (one_line(turn) for turn in done.turns)
    lines = [f"{turn} interrupted: {killed.get(turn, 'nothing of it was running')}" for turn in turns]
    return [*lines, f"not yet written down: {one_line(done.unwritten)}; it is as soon as there is space"]


def arguments(summary: object) -> str:
    """Formats a tool's arguments without JSON syntax: a single value alone, else each by name."""
    text = str(summary or "")
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        # Long ones are cut off; a person recognises the beginning.
        return one_line(re.sub(r'^\{"\w+": "', "", text))
    if len(found) == 1:
        return one_line(*found.values())
    return ", ".join(f"{one_line(name)}: {one_line(value)}" for name, value in found.items())


def command_end(fields: _Fields) -> str:
    """Describes how a command ended, from the fields of tool.finished.

    Empty for success, or without a command.
    """
    if fields.get("signal"):
        return one_line(fields["signal"])
    return f"exit {fields['exit']}" if fields.get("exit") else ""


def finish(fields: _Fields) -> str:
    """Describes why an answer is incomplete, from the fields of turn.done; empty when it is complete."""
    reason = one_line(fields.get("finish") or "stop")
    return "" if reason == "stop" else _FINISHES.get(reason, f"the model ended it: {reason}")


def _quote(text: object) -> str:
    return f"“{cut(one_line(text), _QUOTE_WIDTH)}”"


def _all_fields(fields: _Fields) -> str:
    return one_line(" ".join(f"{name}={cut(one_line(value), 40)}" for name, value in fields.items()))


def _accepted(fields: _Fields) -> str:
    busy = f", {fields['busy']} if busy" if fields.get("busy") else ""
    words = f" {_quote(fields['text'])}" if fields.get("text") else ""
    return f"{fields.get('message')} ({fields.get('kind', 'text')}{busy}){words}"


def _opened(fields: _Fields) -> str:
    return f"{fields.get('turn')} answers {', '.join(fields.get('messages') or ())}"


def _attempt_opened(fields: _Fields) -> str:
    where = f"worker {fields.get('worker')}, pid {fields.get('pid')}"
    return f"{fields.get('turn')} attempt {fields.get('attempt')} on {where}"


def _tool_finished(fields: _Fields) -> str:
    how = "done" if fields.get("ok") else "failed"
    status = f" ({ended})" if (ended := command_end(fields)) else ""
    name = fields.get("name") or fields.get("call")
    return f"{fields.get('turn')} {name} {how}{status} in {fields.get('ms')} ms"


def _done(fields: _Fields) -> str:
    usage = fields.get("usage") or {}
    spent = counted(usage["output_tokens"], "token") if usage.get("output_tokens") else ""
    remarks = [each for each in (spent, finish(fields)) if each]
    shown = f" ({'; '.join(remarks)})" if remarks else ""
    return f"{fields.get('turn')} {_quote(fields.get('text', ''))}{shown}"


def _failed(fields: _Fields) -> str:
    hint = f" (hint: {fields['hint']})" if fields.get("hint") else ""
    return f"{fields.get('turn')} {fields.get('error')}{hint}"


_FINISHES = {
    "length": "cut off: the model's limit of length was reached",
    "content_filter": "cut off by the server's content filter",
    "refusal": "the model declined to answer",
    "empty": "the model gave an empty answer",
}
_GISTS: dict[str, Callable[[_Fields], str]] = {
    "message.accepted": _accepted,
    "message.dropped": lambda fields: f"{fields.get('message')} by {fields.get('by')}",
    "session.begun": lambda fields: (
        f"with {fields.get('turns')} earlier turns" + (f" of {fields['from']}" if fields.get("from") else "")
    ),
    "session.held": lambda fields: f"{fields.get('waiting')} waiting until the next message or a resume",
    "transcript.ready": lambda fields: f"{fields.get('message')} {_quote(fields.get('text', ''))}",
    "transcript.failed": lambda fields: f"{fields.get('message')} {fields.get('reason')}",
    "turn.opened": _opened,
    "turn.joined": lambda fields: f"{_opened(fields)}, too",
    "attempt.opened": _attempt_opened,
    "attempt.stuck": lambda f: f"{f.get('turn')} {left(f)}",
    "attempt.lost": lambda f: f"{f.get('turn')} attempt {f.get('attempt')}: {f.get('reason')}",
    "tool.started": lambda fields: (
        f"{fields.get('turn')} {fields.get('name')} {arguments(fields.get('summary'))}"
    ),
    "tool.finished": _tool_finished,
    "question.asked": lambda fields: f"{fields.get('question')} {_quote(fields.get('text', ''))}",
    "question.answered": lambda f: f"{f.get('question')} {_quote(f.get('text', ''))} by {f.get('by')}",
    "turn.steered": lambda fields: f"{fields.get('turn')} took in {fields.get('message')}",
    "turn.done": _done,
    "turn.interrupted": lambda fields: f"{fields.get('turn')} by {fields.get('by')}: {proof(fields)}",
    "turn.failed": _failed,
}
