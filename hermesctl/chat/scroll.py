"""The scroll of the chat: each item is drawn once; the end is shown, unless a person reads back."""

from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.controls import UIContent, UIControl
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType

from hermesctl.chat.controller import Controller
from hermesctl.chat.drawing import Look, beginning_line, item_lines, notice_lines, tail_lines
from hermesctl.chat.markdown import Line
from hermesctl.chat.session_log import Gap, Item
from hermesctl.chat.terminal_text import steady
from hermesctl.chat.turn import Turn

# Cached drawings; a whole session log fits.
_DRAWN_MAX = 1100
_WHEEL_LINES = 3


def _steadied(line: Line) -> StyleAndTextTuples:
    return [(style, steady(text)) for style, text in line]


class View(UIControl):
    """Lines of the current conversation. `is_reading_back` while it does not show the end."""

    def __init__(self, controller: Controller, now: Callable[[], float]) -> None:
        self._controller = controller
        self._now = now
        self._drawn: dict[str, tuple[tuple[int, int, bool], list[Line]]] = {}
        # The first visible line; None follows the end.
        self._top: int | None = None
        # Where the view rests without scrolling: at the end, or at the start of a notice too long for it.
        self._home = 0
        self._bottom = 0
        self._notice_at = 0
        self._height = 1
        self._count = 0
        self._shape: tuple[str, int, int] = ("", 0, 0)
        # Each turn with its first line and the one after its last.
        self._places: list[tuple[Turn, int, int]] = []

    @property
    def is_reading_back(self) -> bool:
        return self._top is not None

    def create_content(self, width: int, height: int | None) -> UIContent:
        # One column stays free, so that no terminal wraps a full line by itself.
        controller = self._controller
        lines = self._lines(Look(max(1, width - 1), controller.is_unfolded, self._now(), controller.is_away))
        self._height = height or 1
        self._keep_place(len(lines), width)
        self._bottom = max(0, len(lines) - self._height)
        self._home = min(self._bottom, self._notice_at)
        top = self._home if self._top is None else min(self._top, self._bottom)
        if controller.is_unfolded:
            controller.outputs.want(self._in_view(top, top + self._height))
        shown = [_steadied(line) for line in lines[top : top + self._height]]
        return UIContent(shown.__getitem__, len(shown), show_cursor=False)

    def scroll(self, lines: int) -> None:
        """Scrolls down, or up when negative. At the top it fetches earlier events."""
        top = (self._home if self._top is None else self._top) + lines
        if top < 0:
            self._controller.read_earlier()
        is_home = top >= self._bottom == self._home
        self._top = None if is_home else max(0, min(top, self._bottom))

    def page(self, pages: int) -> None:
        self.scroll(pages * max(1, self._height - 2))

    def follow(self) -> None:
        """Shows the newest lines from here on."""
        self._top = None

    def mouse_handler(self, mouse_event: MouseEvent) -> None:
        if mouse_event.event_type == MouseEventType.SCROLL_UP:
            self.scroll(-_WHEEL_LINES)
        elif mouse_event.event_type == MouseEventType.SCROLL_DOWN:
            self.scroll(_WHEEL_LINES)

    def is_focusable(self) -> bool:
        return False

    def _keep_place(self, count: int, width: int) -> None:
        """Lines inserted in front move the view down by as many.

        Another width or session moves it to the end.
        """
        log = self._controller.current.log
        shape = (self._controller.current.session, width, log.first_seq)
        if self._top is not None and shape[:2] != self._shape[:2]:
            self._top = None
        elif self._top is not None and shape != self._shape:
            self._top += max(0, count - self._count)
        self._shape, self._count = shape, count

    def _in_view(self, top: int, bottom: int) -> list[Turn]:
        """Returns the turns of which a line is visible."""
        return [turn for turn, begin, end in self._places if begin < bottom and end > top]

    def _lines(self, look: Look) -> list[Line]:
        conversation = self._controller.current
        log = conversation.log
        lines: list[Line] = []
        self._places.clear()
        if beginning := beginning_line(log):
            lines += [beginning, []]
        for item in log.items:
            if isinstance(item, Turn) and lines and lines[-1]:
                lines.append([])
            begin = len(lines)
            lines += self._drawn_item(item, look)
            if isinstance(item, Turn):
                self._places.append((item, begin, len(lines)))
        if lines and lines[-1]:
            lines.append([])
        lines += tail_lines(conversation, look)
        self._notice_at = len(lines)
        if self._controller.notice is not None:
            lines += notice_lines(self._controller.notice, look)
        return lines

    def _drawn_item(self, item: Item, look: Look) -> list[Line]:
        log = self._controller.current.log
        if isinstance(item, Gap):
            return item_lines(item, log, look)
        key = (item.version if isinstance(item, Turn) else 0, look.width, look.is_unfolded)
        drawn = self._drawn.get(item.id)
        if drawn is None or drawn[0] != key:
            if len(self._drawn) > _DRAWN_MAX:
                self._drawn.clear()
            drawn = self._drawn[item.id] = (key, item_lines(item, log, look))
        return drawn[1]
