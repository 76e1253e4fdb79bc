"""The scroll of the chat: each item is drawn once; the end is shown, unless a person reads back."""

from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.controls import UIContent, UIControl
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType

from hermesctl.chat.controller import Desk
from hermesctl.chat.drawing import Look, beginning_line, item_lines, notice_lines, tail_lines
from hermesctl.chat.markdown import Line
from hermesctl.chat.session_log import Gap, Item
from hermesctl.chat.terminal_text import steady
from hermesctl.chat.turn import Turn

# Drawn items that are remembered; a whole transcript fits.
_DRAWN_MAX = 1100
_WHEEL_LINES = 3


def _steadied(line: Line) -> StyleAndTextTuples:
    return [(style, steady(text)) for style, text in line]


class View(UIControl):
    """Lines of the current conversation. `is_reading_back` while it does not show the end."""

    def __init__(self, desk: Desk, now: Callable[[], float]) -> None:
        self._desk = desk
        self._now = now
        self._drawn: dict[str, tuple[tuple[int, int, bool], list[Line]]] = {}
        # The first line that is shown; None follows the end.
        self._top: int | None = None
        # Where the view rests when nobody scrolls: at the end, or where a notice too long for it begins.
        self._home = 0
        self._bottom = 0
        self._notice_at = 0
        self._height = 1
        self._count = 0
        self._shape: tuple[str, int, int] = ("", 0, 0)
        # Each turn with its first line and the one behind its last.
        self._places: list[tuple[Turn, int, int]] = []

    @property
    def is_reading_back(self) -> bool:
        return self._top is not None

    def create_content(self, width: int, height: int | None) -> UIContent:
        # One column stays free, so that no terminal wraps a full line by itself.
        desk = self._desk
        lines = self._lines(Look(max(1, width - 1), desk.is_unfolded, self._now(), desk.is_away))
        self._height = height or 1
        self._keep_place(len(lines), width)
        self._bottom = max(0, len(lines) - self._height)
        self._home = min(self._bottom, self._notice_at)
        top = self._home if self._top is None else min(self._top, self._bottom)
        if desk.is_unfolded:
            desk.outputs.want(self._in_view(top, top + self._height))
        shown = [_steadied(line) for line in lines[top : top + self._height]]
        return UIContent(shown.__getitem__, len(shown), show_cursor=False)

    def scroll(self, lines: int) -> None:
        """Down, or up when negative. At the top, what was said earlier is fetched."""
        top = (self._home if self._top is None else self._top) + lines
        if top < 0:
            self._desk.read_earlier()
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
        """Lines put in front move what is read down by as many; another width or session goes to the end."""
        transcript = self._desk.current.transcript
        shape = (self._desk.current.session, width, transcript.first_seq)
        if self._top is not None and shape[:2] != self._shape[:2]:
            self._top = None
        elif self._top is not None and shape != self._shape:
            self._top += max(0, count - self._count)
        self._shape, self._count = shape, count

    def _in_view(self, top: int, bottom: int) -> list[Turn]:
        """The turns of which a line is shown."""
        return [turn for turn, begin, end in self._places if begin < bottom and end > top]

    def _lines(self, look: Look) -> list[Line]:
        conversation = self._desk.current
        transcript = conversation.transcript
        lines: list[Line] = []
        self._places.clear()
        if beginning := beginning_line(transcript):
            lines += [beginning, []]
        for item in transcript.items:
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
        if self._desk.notice is not None:
            lines += notice_lines(self._desk.notice, look)
        return lines

    def _drawn_item(self, item: Item, look: Look) -> list[Line]:
        transcript = self._desk.current.transcript
        if isinstance(item, Gap):
            return item_lines(item, transcript, look)
        key = (item.version if isinstance(item, Turn) else 0, look.width, look.is_unfolded)
        drawn = self._drawn.get(item.id)
        if drawn is None or drawn[0] != key:
            if len(self._drawn) > _DRAWN_MAX:
                self._drawn.clear()
            drawn = self._drawn[item.id] = (key, item_lines(item, transcript, look))
        return drawn[1]
