"""Draws the session log as styled lines of a given width. Pure: the same state gives the same lines."""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hermesctl.chat.controller import Notice
from hermesctl.chat.conversation import Conversation
from hermesctl.chat.markdown import Line, markdown_lines, plain_lines
from hermesctl.chat.session_log import Gap, Item, Message, SessionLog
from hermesctl.chat.turn import Mark, Question, Steered, Tool, Turn
from hermesctl.choices import numbered, ways
from hermesctl.event_format import arguments, finish, proof
from hermesctl.neutral import neutral
from hermesctl.render import age, counted, cut, one_line

# Longer lines are hard to read, even where the terminal could show them.
_TEXT_WIDTH_MAX = 100
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TICKS_A_SECOND = 4
_SIGNS = {"running": "·", "ok": "✔", "failed": "✘", "cut": "■"}
_SIGN_STYLES = {"running": "class:dim", "ok": "class:ok", "failed": "class:fault", "cut": "class:cut"}
# A first column up to this width keeps the second one aligned; a wider one would leave it no space.
_COLUMN_MAX = 24
# Waiting messages shown; /queue lists them all.
_WAITING_SHOWN = 6


@dataclass(frozen=True)
class Look:
    """How to draw: the width, whether tools are unfolded, and the current time."""

    width: int
    is_unfolded: bool
    now: float
    is_away: bool = False

    @property
    def text_width(self) -> int:
        return min(self.width, _TEXT_WIDTH_MAX)


def item_lines(item: Item, log: SessionLog, look: Look) -> list[Line]:
    """Draws one item of the log; a turn has blank lines around it."""
    match item:
        case Turn():
            return _spaced(_turn_lines(item, log, look))
        case Message():
            return list(_ended_message(item, look))
        case Gap():
            return [
                *_wrapped("⋯ ", f"the journal was repaired; {item.lost} events are missing", look, "dim"),
                [],
            ]


def tail_lines(conversation: Conversation, look: Look) -> list[Line]:
    """Draws the current activity: one progress line of the running turn, and the waiting messages."""
    lines: list[Line] = []
    turn = conversation.log.open_turn
    if turn is not None and turn.state != "asking":
        lines += [_sign_of_life(turn, conversation, look), []]
    waiting = list(_waiting_lines(conversation, look))
    return [*lines, *waiting, []] if waiting else lines


def notice_lines(notice: Notice, look: Look) -> list[Line]:
    style = "class:fault" if notice.tone == "fault" else "class:notice"
    lines: list[Line] = []
    for index, text in enumerate(notice.lines):
        shown = style if notice.tone == "plain" or index == 0 else "class:dim"
        lines += [[("class:dim", "┆ "), (shown, part)] for part in _hanging(text, look.width - 2)]
    return [*lines, []]


def _hanging(text: str, width: int) -> list[str]:
    """Wraps so that a second column stays aligned."""
    column = re.match(r"\S.*?\s{2,}", text)
    indent = column.end() if column and column.end() <= _COLUMN_MAX else 0
    first, *rest = _wrap(text[indent:], width - indent) or [""]
    return [text[:indent] + first, *(" " * indent + part for part in rest)]


def beginning_line(log: SessionLog) -> Line:
    return [("class:dim", "⋯ PageUp shows what was said earlier")] if log.first_seq > 1 else []


def _spaced(lines: Iterable[Line]) -> list[Line]:
    """Never two blank lines in a row, and one at the end."""
    spaced: list[Line] = []
    for line in (*lines, []):
        if line or (spaced and spaced[-1]):
            spaced.append(line)
    return spaced


def _turn_lines(turn: Turn, log: SessionLog, look: Look) -> Iterator[Line]:
    for name in turn.messages:
        yield from _said(log.messages.get(name), look)
    yield []
    for piece in turn.pieces():
        yield from _piece_lines(piece, log, look)
    if turn.lost:
        lost = f"attempt {turn.attempt} was lost: {one_line(turn.lost)}; it goes on from here"
        yield from _wrapped("  ⟳ ", lost, look, "dim")
    yield []
    yield from _ending(turn, look)


def _piece_lines(piece: str | Mark, log: SessionLog, look: Look) -> Iterator[Line]:
    match piece:
        case str():
            yield []
            yield from markdown_lines(piece, look.text_width)
            yield []
        case Tool():
            yield from _tool_lines(piece, look)
        case Question():
            yield from _question_lines(piece, look)
        case Steered():
            yield from _said(log.messages.get(piece.message), look)
            yield []


def _said(message: Message | None, look: Look) -> Iterator[Line]:
    if message is None or not (message.text or message.kind == "voice"):
        yield [("class:you", "❯ "), ("class:dim", "(said earlier)")]
        return
    microphone = "🎙️ " if message.kind == "voice" else ""
    words = message.text or "(clip)"
    yield from _wrapped("❯ ", microphone + words, look, "you")


def _tool_lines(tool: Tool, look: Look) -> Iterator[Line]:
    took = " · ".join([tool.ended] * bool(tool.ended) + [f"{tool.ms:,} ms"])
    ms = {"running": "", "cut": "stopped"}.get(tool.state, took)
    name = cut(one_line(tool.name), 24)
    room = look.text_width - len(name) - len(ms) - 9
    summary = arguments(tool.summary)
    sign = (_SIGN_STYLES[tool.state], f"  {_SIGNS[tool.state]} ")
    if not look.is_unfolded:
        yield [sign, ("", name), ("class:dim", f"  {cut(summary, max(room, 8))}  {ms}".rstrip())]
        return
    yield [sign, ("", name), ("class:dim", f"  {ms}".rstrip())]
    yield from _wrapped("    ", arguments(tool.arguments) if tool.arguments else summary, look, "dim")
    output = tool.note if tool.output is None else tool.output
    for line in output.rstrip().splitlines():
        yield from _wrapped("    │ ", line, look, "dim")


def _question_lines(question: Question, look: Look) -> Iterator[Line]:
    yield []
    yield from _wrapped("? ", question.text, look, "question")
    for number, choice in numbered(question.choices):
        yield from _wrapped(f"  {number}  ", one_line(choice), look, "")
    if question.state == "answered":
        yield from _wrapped("❯ ", question.answer, look, "you")
    elif question.state == "open":
        typed = ways(question.kind, question.choices)
        yield [("class:dim", f"  answer with {typed} · Esc withdraws")]
    yield []


def _ending(turn: Turn, look: Look) -> Iterator[Line]:
    """One line with the end of the turn and its time; text that was cut off is marked."""
    fields = turn.ending
    at = time.strftime("%H:%M", time.localtime(turn.ended_at))
    match turn.state:
        case "done":
            tokens = (fields.get("usage") or {}).get("output_tokens")
            spent = [at, age(float(max(0.0, turn.ended_at - turn.opened_at)))] if turn.opened_at else [at]
            spent += [counted(tokens, "token")] if tokens else []
            spent += [f"{counted(turn.losses, 'attempt')} lost"] if turn.losses else []
            yield [("class:dim", " · ".join(spent))]
            if remark := finish(fields):
                yield from _wrapped("! ", remark, look, "question")
        case "interrupted":
            yield from _wrapped("■ ", f"cut off {at} · {proof(fields)}", look, "cut")
        case "failed":
            yield from _wrapped("✘ ", f"failed {at} · {one_line(fields.get('error'))}", look, "fault")
            hint = one_line(fields.get("hint") or "/why tells the story")
            yield from _wrapped("  ", f"hint: {hint} · /retry asks again", look, "dim")


def _ended_message(message: Message, look: Look) -> Iterator[Line]:
    if message.state == "not understood":
        yield from _wrapped("🎙️ ", f"not understood: {one_line(message.reason)}", look, "fault")
        yield from _wrapped("  ", f"hint: {one_line(message.hint)} · /retry listens again", look, "dim")
    else:
        yield from _wrapped("– ", f"taken back: {one_line(message.text) or 'a clip'}", look, "dim")


def _sign_of_life(turn: Turn, conversation: Conversation, look: Look) -> Line:
    seconds = max(0.0, look.now - turn.opened_at) if turn.opened_at else 0.0
    spinner = _SPINNER[int(look.now * _TICKS_A_SECOND) % len(_SPINNER)]
    tools = turn.running_tools
    if look.is_away:
        return [("class:dim", f"⋯ {age(int(seconds))} · goes on when the supervisor is back")]
    if conversation.interrupting == turn.id:
        doing = "interrupting"
    elif turn.state == "queued":
        doing = "accepted, waits for a worker"
    elif len(tools) > 1:
        doing = f"{len(tools)} tools are running"
    elif turn.note:
        doing = one_line(turn.note)
    else:
        doing = f"{one_line(tools[0].name)} is running" if tools else "answering"
    words = cut(f"{age(int(seconds))} · {doing}", max(8, look.width - 22))
    return [("class:life", f"{spinner} "), ("class:dim", f"{words} · Esc interrupts")]


def _waiting_lines(conversation: Conversation, look: Look) -> Iterator[Line]:
    waiting = conversation.log.waiting
    if waiting and conversation.log.is_held:
        yield [("class:question", "  held"), ("class:dim", " · /queue resume lets them go")]
    for number, message in enumerate(waiting[:_WAITING_SHOWN], 1):
        words = message.text or (message.note or "🎙️ listening …" if message.kind == "voice" else "…")
        yield _waiting_line(f"{number}", words, "accepted, waits", look)
    if len(waiting) > _WAITING_SHOWN:
        yield [("class:dim", f"    and {len(waiting) - _WAITING_SHOWN} more · /queue lists them")]
    for outgoing in conversation.outgoing:
        yield _waiting_line("↑", outgoing.text, outgoing.state, look)


def _waiting_line(sign: str, words: str, state: str, look: Look) -> Line:
    room = max(8, look.text_width - len(state) - 8)
    return [
        ("class:dim", f"  {sign} "),
        ("class:you-waiting", cut(one_line(words), room)),
        ("class:dim", f"  {state}"),
    ]


def _wrapped(prefix: str, text: str, look: Look, style: str) -> Iterator[Line]:
    """Wraps the text beside its prefix; further lines are indented below the first."""
    shown = f"class:{style}" if style else ""
    first = prefix
    for part in _wrap(text, look.text_width - len(prefix)) or [""]:
        yield [(shown, first), (shown, part)]
        first = prefix if prefix.endswith("│ ") else " " * len(prefix)


def _wrap(text: str, width: int) -> list[str]:
    return plain_lines(neutral(text).expandtabs(4), max(8, width))
