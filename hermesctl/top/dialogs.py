"""Dialogs over the screen of `top`: a question with yes or no, and a text to read."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from hermesctl.neutral import neutral


class Confirm(ModalScreen[bool]):
    """Yes needs a y; every other key changes nothing."""

    CSS = """
    Confirm { align: center middle; }
    #box { width: auto; max-width: 90%; height: auto; border: round ansi_yellow; padding: 0 2; }
    #box Static { width: auto; max-width: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)"),
        Binding("n,escape,q,enter,ctrl+c", "answer(False)", priority=True),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Text(neutral(self._question)))
            yield Static(Text("y yes · n no", style="dim"))

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Reading(ModalScreen[None]):
    """Lines under a title, of any length."""

    CSS = """
    Reading { align: center middle; }
    #page { width: 90%; max-width: 110; height: auto; max-height: 90%; padding: 0 1; }
    #page { border: round ansi_cyan; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,enter,w,question_mark,ctrl+c", "close", priority=True)
    ]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as page:
            page.border_title = Text(self._title)
            page.border_subtitle = "Esc closes"
            yield Static(Text("\n".join(neutral(line) for line in self._lines)))

    def action_close(self) -> None:
        self.dismiss(None)
