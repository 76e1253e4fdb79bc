"""The keys of the chat: one table, which binds them and makes /help; a test compares the documents.

Esc and Alt share a byte. A terminal sends Alt-Enter as Esc and Enter in one piece, and a lone Esc as nothing
but that byte. So two questions follow an Esc byte, and only the first needs time:

- Is it the beginning of a longer sequence, such as an arrow key? The parser of prompt_toolkit waits for the
  rest for `ESCAPE_SECONDS`; terminals send a sequence in one piece, so this is for a line that splits it.
- Is it Alt with the next key? By default prompt_toolkit waits here too, so that whatever is typed next is
  taken for Alt and its letter. Not here: a key that has not arrived with the Esc does not belong to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


class Actions(Protocol):
    """The actions of the screen that keys run."""

    @property
    def application(self) -> Application[Any]: ...

    @property
    def buffer(self) -> Buffer: ...

    def enter(self) -> None: ...

    def new_line(self) -> None: ...

    def escape(self) -> None: ...

    def ctrl_c(self) -> None: ...

    def ctrl_d(self) -> None: ...

    def complete(self) -> None: ...

    def scroll_pages(self, pages: int) -> None: ...

    def scroll_to_end(self) -> None: ...

    def toggle_tools(self) -> None: ...

    def next_unread(self) -> None: ...

    def edit(self) -> None: ...

    def suspend(self) -> None: ...


# As tmux waits: shorter than a person notices, longer than the rest of a split sequence takes.
ESCAPE_SECONDS = 0.01
# Time limit for the second key of Ctrl-X Ctrl-E.
CHAIN_SECONDS = 0.5
_ESCAPE = ("escape",)


@dataclass(frozen=True)
class Key:
    """`sequences` are empty where the line editor binds the key already."""

    name: str
    says: str
    sequences: tuple[tuple[str, ...], ...] = ()
    press: Callable[[Actions], None] = lambda screen: None


def bindings(screen: Actions) -> KeyBindings:
    bound = KeyBindings()
    usual = has_focus(screen.buffer) & ~is_searching
    for key in KEYS:
        for sequence in key.sequences:
            alone = Condition(lambda: not screen.application.key_processor.input_queue)
            is_eager = alone if sequence == _ESCAPE else False
            bound.add(*sequence, filter=usual, eager=is_eager)(_pressing(screen, key))
    return bound


def _pressing(screen: Actions, key: Key) -> Callable[[KeyPressEvent], None]:
    return lambda event: key.press(screen)


KEYS = (
    Key("Enter", "send", (("enter",),), lambda screen: screen.enter()),
    Key("Alt-Enter, Ctrl-J", "a new line", (("escape", "enter"), ("c-j",)), lambda screen: screen.new_line()),
    Key("Esc", "interrupt what runs", (("escape",),), lambda screen: screen.escape()),
    Key("Ctrl-C", "the same; when nothing runs, twice leaves", (("c-c",),), lambda screen: screen.ctrl_c()),
    Key("Ctrl-D", "leave; what runs goes on", (("c-d",),), lambda screen: screen.ctrl_d()),
    Key("Up, Down", "lines typed before"),
    Key("Ctrl-R", "search in them"),
    Key("Tab", "complete a command", (("tab",),), lambda screen: screen.complete()),
    Key(
        "PageUp, wheel up",
        "read back; at the top, fetch more",
        (("pageup",),),
        lambda screen: screen.scroll_pages(-1),
    ),
    Key("PageDown, wheel down", "read on", (("pagedown",),), lambda screen: screen.scroll_pages(1)),
    Key("Ctrl-End", "to the newest line", (("c-end",),), lambda screen: screen.scroll_to_end()),
    Key("Ctrl-O", "unfold or fold tools", (("c-o",),), lambda screen: screen.toggle_tools()),
    Key("Ctrl-T", "to the next session with news", (("c-t",),), lambda screen: screen.next_unread()),
    Key("Ctrl-X Ctrl-E", "write in your editor", (("c-x", "c-e"),), lambda screen: screen.edit()),
    Key("Ctrl-L", "draw the screen again"),
    Key("Ctrl-Z", "to the shell; fg comes back", (("c-z",),), lambda screen: screen.suspend()),
)
