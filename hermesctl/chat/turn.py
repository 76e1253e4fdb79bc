"""One turn as a chat shows it: words, tools and questions in their order. No I/O; every word counts once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hermesctl.choices import meant_by
from hermesctl.events import command_end

Fields = dict[str, Any]
TurnState = Literal["queued", "running", "asking", "done", "failed", "interrupted"]
ToolState = Literal["running", "ok", "failed", "cut"]
ENDED = frozenset({"done", "failed", "interrupted"})


@dataclass(slots=True)
class Tool:
    """A tool call, from being written down to its end."""

    call: str
    name: str
    summary: str
    state: ToolState = "running"
    ms: int = 0
    # How its command ended: a status that is not 0, or a signal.
    ended: str = ""
    # The last it told of itself while it ran: a piece of its output.
    note: str = ""
    # Whole, once they were fetched: the feed has a summary of the arguments, and of the output nothing.
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
    """A message that the running agent has taken in."""

    message: str


Mark = Tool | Question | Steered
_Kind = TypeVar("_Kind", Tool, Question)


@dataclass(slots=True)
class Attempt:
    """What one worker has said; each mark stands where the text was when it happened."""

    number: int
    text: str = ""
    marks: list[tuple[int, Mark]] = field(default_factory=list)
    # Why what it said counts no more; empty while it counts.
    lost: str = ""

    def add(self, offset: int, text: str) -> None:
        """A piece of the stream: nothing is said twice, and after a gap only a piece that closes it fits."""
        position = len(self.text)
        if offset <= position:
            self.text += text[position - offset :]

    def settle(self, whole: str) -> None:
        """The text as it is written down in the end; marks of another text have lost their places."""
        if not whole.startswith(self.text):
            self.marks = [(0, mark) for _, mark in self.marks]
        self.text = whole

    def pieces(self) -> list[str | Mark]:
        """Words and marks in the order in which they happened."""
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


@dataclass(slots=True)
class Turn:
    """The answer owed to some messages. `version` grows with every change, so that drawings can be kept."""

    id: str
    opened_at: float
    messages: tuple[str, ...] = ()
    state: TurnState = "queued"
    attempts: list[Attempt] = field(default_factory=list)
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
        """Those that run now, the newest first: calls of one reply run side by side."""
        return [tool for tool in self._marks(Tool) if tool.state == "running"]

    def tools(self) -> Iterator[tuple[int, Tool]]:
        """Every call with the number of its attempt."""
        for attempt in self.attempts:
            for _, mark in attempt.marks:
                if isinstance(mark, Tool):
                    yield attempt.number, mark

    def begin_attempt(self, number: int) -> None:
        self.attempts.append(Attempt(number))
        self.state = "running"
        self.note = ""

    def speak(self, attempt: int, offset: int, text: str) -> None:
        """Words of an attempt that is over, or of a turn that is, are an echo."""
        if not self.is_open or attempt < self._attempt.number or self._attempt.lost:
            return
        if attempt > self._attempt.number:
            self.begin_attempt(attempt)
        self._attempt.add(offset, text)
        self.note = ""

    def remark(self, text: str, call: str = "") -> None:
        """A fleeting word about what goes on; the running tool that it is of keeps the last."""
        if not self.is_open:
            return
        self.note = text
        for tool in self.running_tools:
            if tool.call == call:
                tool.note = text

    def start_tool(self, fields: Fields) -> None:
        tool = Tool(str(fields.get("call")), str(fields.get("name")), str(fields.get("summary") or ""))
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
        """A question takes the place of the call that asked it."""
        marks = self._attempt.marks
        if marks and isinstance(marks[-1][1], Tool) and marks[-1][1].state == "running":
            marks.pop()
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

    def lose(self, reason: str) -> None:
        """The attempt counts no more, but its tools have run; the next one says it all again."""
        self._cut_tools()
        self._attempt.lost = reason or "no reason was given"
        self.state = "queued"

    def end(self, state: TurnState, at: float, fields: Fields) -> None:
        whole = fields.get("text") if state == "done" else fields.get("partial")
        if isinstance(whole, str) and (whole or state == "done"):
            self._attempt.lost = ""
            self._attempt.settle(whole)
        self._cut_tools()
        if (question := self.question) is not None:
            question.state = "withdrawn"
        self.state, self.ended_at, self.ending, self.note = state, at, fields, ""

    @property
    def _attempt(self) -> Attempt:
        if not self.attempts:
            self.attempts.append(Attempt(1))
        return self.attempts[-1]

    def _mark(self, mark: Mark) -> None:
        self._attempt.marks.append((len(self._attempt.text), mark))

    def _marks(self, kind: type[_Kind]) -> list[_Kind]:
        """The newest first."""
        marks = [mark for attempt in self.attempts for _, mark in attempt.marks]
        return [mark for mark in reversed(marks) if isinstance(mark, kind)]

    def _cut_tools(self) -> None:
        for tool in self._marks(Tool):
            if tool.state == "running":
                tool.state = "cut"
