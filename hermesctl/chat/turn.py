"""One turn as the chat shows it: text, tools and questions in their order. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hermesctl.choices import meant_by
from hermesctl.event_format import command_end

Fields = dict[str, Any]
TurnState = Literal["queued", "running", "asking", "done", "failed", "interrupted"]
ToolState = Literal["running", "ok", "failed", "cut"]
ENDED = frozenset({"done", "failed", "interrupted"})


@dataclass(slots=True)
class Tool:
    """A tool call of an attempt, from its record to its end."""

    call: str
    name: str
    summary: str
    attempt: int = 1
    state: ToolState = "running"
    ms: int = 0
    # How its command ended: a status other than 0, or a signal.
    ended: str = ""
    # Its last note while it ran: a piece of its output.
    note: str = ""
    # Complete once fetched: the event has a summary of the arguments, and nothing of the output.
    is_fetched: bool = False
    arguments: str = ""
    output: str | None = None


@dataclass(slots=True)
class Question:
    """Something only a person can answer; the end of its turn withdraws it."""

    id: str
    kind: str
    text: str
    choices: tuple[str, ...]
    state: Literal["open", "answered", "withdrawn"] = "open"
    answer: str = ""
    by: str = ""

    def meant_by(self, typed: str) -> str:
        return meant_by(typed, self.kind, self.choices)


@dataclass(slots=True)
class Steered:
    """A message that the running agent has received."""

    message: str


Mark = Tool | Question | Steered
_Kind = TypeVar("_Kind", Tool, Question)


@dataclass(slots=True)
class Turn:
    """The answer to some messages. `version` grows with every change, so that drawings can be cached.

    All attempts together give one text: each continues where the one before it stopped. Each mark has the
    length of the text when it happened.
    """

    id: str
    opened_at: float
    messages: tuple[str, ...] = ()
    state: TurnState = "queued"
    text: str = ""
    marks: list[tuple[int, Mark]] = field(default_factory=list)
    # The number of the latest attempt; how many were lost; and why the latest was, until another one begins.
    attempt: int = 0
    losses: int = 0
    lost: str = ""
    ended_at: float = 0.0
    # The fields of the event that ended it.
    ending: Fields = field(default_factory=dict)
    note: str = ""
    version: int = 0

    @property
    def is_open(self) -> bool:
        return self.state not in ENDED

    @property
    def question(self) -> Question | None:
        """The question that is waiting for an answer."""
        return next((each for each in self._marks(Question) if each.state == "open"), None)

    @property
    def running_tools(self) -> list[Tool]:
        """Running calls, the newest first: calls of one reply run side by side."""
        return [tool for tool in self._marks(Tool) if tool.state == "running"]

    def tools(self) -> Iterator[tuple[int, Tool]]:
        """Yields every call with the number of its attempt."""
        return ((mark.attempt, mark) for _, mark in self.marks if isinstance(mark, Tool))

    def pieces(self) -> list[str | Mark]:
        """Yields text and marks in the order in which they happened."""
        found: list[str | Mark] = []
        begin = 0
        for offset, mark in self.marks:
            if self.text[begin:offset].strip():
                found.append(self.text[begin:offset])
            found.append(mark)
            begin = max(begin, offset)
        if self.text[begin:].strip():
            found.append(self.text[begin:])
        return found

    def begin_attempt(self, number: int) -> None:
        self.attempt, self.lost = number, ""
        self.state = "running"
        self.note = ""

    def append(self, attempt: int, offset: int, text: str) -> None:
        """Appends streamed text; drops repetitions, and after a gap all pieces but the one that closes it."""
        if not self.is_open:
            return
        if attempt > self.attempt:
            self.begin_attempt(attempt)
        position = len(self.text)
        if offset <= position:
            self.text += text[position - offset :]
        self.note = ""

    def remark(self, text: str, call: str = "") -> None:
        """Stores a transient note; the tool that it belongs to keeps the last one."""
        if not self.is_open:
            return
        self.note = text
        for tool in self.running_tools:
            if tool.call == call:
                tool.note = text

    def start_tool(self, fields: Fields) -> None:
        tool = Tool(str(fields.get("call")), str(fields.get("name")), str(fields.get("summary") or ""))
        tool.attempt = self.attempt
        self._mark(tool)

    def finish_tool(self, fields: Fields) -> None:
        for tool in self._marks(Tool):
            if tool.call == fields.get("call") and tool.state == "running":
                tool.state = "ok" if fields.get("ok") else "failed"
                tool.ms = int(fields.get("ms") or 0)
                tool.ended = command_end(fields)
                self.note = ""
                return

    def ask(self, fields: Fields) -> None:
        """Replaces the call that asked by its question."""
        last = self.marks[-1][1] if self.marks else None
        if isinstance(last, Tool) and last.state == "running":
            self.marks.pop()
        choices = tuple(str(choice) for choice in fields.get("choices") or ())
        kind, text = str(fields.get("kind")), str(fields.get("text"))
        self._mark(Question(str(fields.get("question")), kind, text, choices))
        self.state = "asking"

    def answer(self, fields: Fields) -> None:
        for question in self._marks(Question):
            if question.id == fields.get("question"):
                question.state = "answered"
                question.answer, question.by = str(fields.get("text")), str(fields.get("by") or "")
        self.state = "queued"

    def steer(self, message: str) -> None:
        self._mark(Steered(message))

    def lose(self, reason: str, offset: int | None) -> None:
        """Ends the attempt; the next one continues at `offset`.

        Text beyond it was shown and never recorded; events of earlier versions do not have the offset.
        """
        self._cut_tools()
        self.losses += 1
        self.lost = reason or "no reason was given"
        self.state = "queued"
        if offset is not None:
            self.text = self.text[:offset]
            self.marks = [(min(at, offset), mark) for at, mark in self.marks]

    def end(self, state: TurnState, at: float, fields: Fields) -> None:
        whole = fields.get("text") if state == "done" else fields.get("partial")
        if isinstance(whole, str) and (whole or state == "done"):
            self._settle(whole)
        self.lost = ""
        self._cut_tools()
        if (question := self.question) is not None:
            question.state = "withdrawn"
        self.state, self.ended_at, self.ending, self.note = state, at, fields, ""

    def _settle(self, whole: str) -> None:
        """Replaces the text by the recorded one; marks of another text lose their positions."""
        if not whole.startswith(self.text):
            self.marks = [(0, mark) for _, mark in self.marks]
        self.text = whole

    def _mark(self, mark: Mark) -> None:
        self.marks.append((len(self.text), mark))

    def _marks(self, kind: type[_Kind]) -> list[_Kind]:
        """The newest first."""
        return [mark for _, mark in reversed(self.marks) if isinstance(mark, kind)]

    def _cut_tools(self) -> None:
        for tool in self._marks(Tool):
            if tool.state == "running":
                tool.state = "cut"
