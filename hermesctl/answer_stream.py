"""Shows the turn that answers: its text once and in order, whatever the stream repeats or misses."""

import shutil
import sys
from typing import Any, Protocol

from hermesctl.event_format import arguments, finish, gist, json_line, proof
from hermesctl.neutral import Pieces
from hermesctl.question_prompt import Prompt, question_lines
from hermesctl.render import aside, cut, one_line, paint
from ipc.messages import Delta, Event, Noted

# Back to the first column, with the rest of the line erased.
_LINE_START = "\r\x1b[K"
# Enough of a call's arguments to tell it from another.
_LABEL_WIDTH = 40
# The tool by which an agent asks: the question itself follows at once.
_ASKING = "ask"


class Shown(Protocol):
    """The output for the answering turn."""

    def show(self, item: Event | Delta | Noted) -> None: ...

    def remark(self, text: str) -> None: ...

    def join_at(self, offset: int) -> None: ...


class RunningCalls:
    """Tool calls that run side by side: their notes are then shown with their arguments."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}
        self._are_several = False

    def start(self, fields: dict[str, Any]) -> None:
        self._running[str(fields.get("call"))] = cut(arguments(fields.get("summary")), _LABEL_WIDTH)
        self._are_several = len(self._running) > 1

    def finish(self, fields: dict[str, Any]) -> None:
        self._running.pop(str(fields.get("call")), None)
        self._are_several = self._are_several and bool(self._running)

    def label(self, call: str, end: str = "") -> str:
        """The arguments of a call that does not run alone; empty for one that does."""
        found = self._running.get(call, "") if self._are_several else ""
        return found + end if found else ""


class PlainText:
    """Shows the answering turn to a person: text to stdout, the rest to stderr."""

    def __init__(self) -> None:
        self._speech = AnswerPrinter()
        self._prompt = Prompt()
        self._calls = RunningCalls()

    def show(self, item: Event | Delta | Noted) -> None:
        if isinstance(item, Delta):
            self._speech.take(item)
        elif isinstance(item, Noted) and item.replaces:
            self._speech.flash(f"· {item.text}")
        elif isinstance(item, Noted):
            self.remark(f"· {self._calls.label(item.call, ': ')}{item.text}")
        else:
            self._show_event(item)

    def remark(self, text: str) -> None:
        self._speech.aside(text)

    def join_at(self, offset: int) -> None:
        self._speech.join_at(offset)

    def _show_event(self, event: Event) -> None:
        fields = event.fields
        match event.type:
            case "turn.done":
                self._speech.finish(str(fields.get("text") or ""))
                if remark := finish(fields):
                    self.remark(f"! {remark}")
            case "turn.interrupted":
                self._speech.finish(str(fields.get("partial") or ""))
                self.remark(f"{fields.get('turn')} interrupted: {proof(fields)}")
            case "turn.failed":
                self._speech.end_line()
            case "attempt.lost":
                if (offset := fields.get("offset")) is not None:
                    self._speech.cut_to(int(offset))
                self.remark(f"attempt {fields.get('attempt')} was lost: {fields.get('reason')}")
            case "question.asked":
                self._speech.end_line()
                self.remark("\n".join(question_lines(fields, self._prompt.is_watched)))
            case "transcript.ready":
                if fields.get("echo", True):
                    self.remark(f"🎙️ “{fields.get('text')}”")
            case "tool.started" if fields.get("name") == _ASKING:
                pass
            case "tool.started":
                self._calls.start(fields)
                self.remark(f"· {gist(event)}")
            case "tool.finished":
                name = self._calls.label(str(fields.get("call")))
                self._calls.finish(fields)
                self.remark(f"· {gist(event)}" + (f": {name}" if name else ""))
            case "question.answered":
                self.remark(f"· {gist(event)}")


class JsonLines:
    """Shows the answering turn to a program: one event a line."""

    def show(self, item: Event | Delta | Noted) -> None:
        print(json_line(item), flush=True)

    def remark(self, text: str) -> None:
        aside(text)

    def join_at(self, offset: int) -> None:
        """Programs get every delta with its offset and decide for themselves."""


class AnswerPrinter:
    """Prints one turn's text to stdout. After a gap it waits for a piece that closes it, or for the end."""

    def __init__(self) -> None:
        self._begin = 0
        self._shown = ""
        self._is_gapped = False
        self._line_open = False
        self._is_flashing = False
        self._pieces = Pieces()

    def join_at(self, offset: int) -> None:
        """Skips the text up to here, which answers another message."""
        self._begin = offset

    def take(self, delta: Delta) -> None:
        position = self._begin + len(self._shown)
        if delta.offset <= position:
            self._is_gapped = False
            self._print(delta.text[position - delta.offset :])
        elif not self._is_gapped:
            self._is_gapped = True
            self.aside("part of the stream was missed; it is shown as soon as it is known")

    def cut_to(self, offset: int) -> None:
        """The recorded answer ends here.

        Text beyond was shown and then lost, so the answer is shown again.
        """
        if self._begin + len(self._shown) > offset:
            begin, kept = min(self._begin, offset), self._shown[: max(0, offset - self._begin)]
            self._restart()
            self._begin = begin
            self._print(kept)

    def _restart(self) -> None:
        """Starts on a new line, as if nothing had been shown."""
        self.end_line()
        self._begin = 0
        self._shown = ""
        self._is_gapped = False

    def finish(self, text: str) -> None:
        """Prints the part of the whole text that was not shown yet."""
        whole = text[self._begin :]
        if whole.startswith(self._shown):
            self._print(whole[len(self._shown) :])
        elif not self._shown.startswith(whole):
            self._restart()
            self._print(text)
        self.end_line()

    def aside(self, text: str) -> None:
        """Prints a remark on a line of its own."""
        if self._line_open and sys.stdout.isatty():
            self.end_line()
        self._unflash()
        aside(text)

    def flash(self, text: str) -> None:
        """Prints a remark that the next remark or text replaces; only on a terminal."""
        if sys.stderr.isatty() and not self._line_open:
            room = shutil.get_terminal_size().columns - 1
            self._draw(paint(cut(one_line(text), room), "dim", sys.stderr))
            self._is_flashing = True

    def _unflash(self) -> None:
        if self._is_flashing:
            self._is_flashing = False
            self._draw("")

    def _draw(self, line: str) -> None:
        """Bypasses the filter of the standard streams, which removes cursor movements."""
        if (terminal := sys.__stderr__) is not None:
            terminal.write(_LINE_START + line)
            terminal.flush()

    def end_line(self) -> None:
        self._unflash()
        if self._line_open:
            self._write(self._pieces.end() + "\n")

    def _print(self, text: str) -> None:
        if text:
            self._shown += text
            self._write(self._pieces.take(text))

    def _write(self, text: str) -> None:
        self._unflash()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._line_open = not text.endswith("\n")
