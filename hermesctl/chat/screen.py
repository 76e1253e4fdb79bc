"""The terminal side of the chat: the layout of the screen, and the actions of the keys."""

import sys
import time

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from hermesctl.chat.controller import Controller
from hermesctl.chat.input_history import CommandCompleter, Input
from hermesctl.chat.keys import CHAIN_SECONDS, ESCAPE_SECONDS, bindings
from hermesctl.chat.scroll import View
from hermesctl.chat.terminal_text import steady
from hermesctl.neutral import REPLACEMENT, formatting_characters
from hermesctl.render import cut, cut_middle, is_coloured, one_line, width

# The input grows with its text up to here; a small terminal keeps space to read.
_INPUT_LINES_MAX = 8
# Two presses of Ctrl-C within this time leave.
_TWICE_SECONDS = 3.0
# Between two drawings: bounds the cost of a fast stream, over ssh too.
_REDRAW_SECONDS = 0.04
# The library replaces control characters by itself; this adds formatting characters, pasted ones too.
Char.display_mappings.update(dict.fromkeys(formatting_characters(), REPLACEMENT))
_STYLE = Style.from_dict(
    {
        "you": "bold ansicyan",
        "you-waiting": "ansicyan",
        "dim": "dim",
        "ok": "ansigreen",
        "fault": "ansired",
        "cut": "ansimagenta",
        "question": "bold ansiyellow",
        "life": "ansicyan",
        "notice": "",
        "rule": "dim",
        "status": "dim",
        "status.session": "bold",
        "status.away": "bold ansiyellow",
        "status.news": "ansiyellow",
        "placeholder": "dim",
        "completion-menu": "bg:default",
        "completion-menu.completion": "bg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default dim",
        "completion-menu.meta.completion.current": "reverse",
        "scrollbar.background": "",
        "scrollbar.button": "reverse",
    }
)


class Screen:
    def __init__(self, controller: Controller, history: History) -> None:
        self.controller: Controller = controller
        self.view: View = View(controller, time.time)
        self.buffer = Input(
            multiline=True,
            history=history,
            completer=CommandCompleter(lambda: list(controller.sessions)),
            complete_while_typing=Condition(lambda: self.buffer.text.startswith("/")),
        )
        self._ctrl_c_at = 0.0
        self.application: Application[None] = Application(
            layout=self._layout(),
            key_bindings=bindings(self),
            style=_STYLE,
            color_depth=ColorDepth.DEPTH_4_BIT if is_coloured(sys.stdout) else ColorDepth.DEPTH_1_BIT,
            full_screen=True,
            output=create_output(sys.__stdout__),
            mouse_support=True,
            min_redraw_interval=_REDRAW_SECONDS,
        )
        self.application.ttimeoutlen = ESCAPE_SECONDS
        self.application.timeoutlen = CHAIN_SECONDS

    def refresh(self) -> None:
        """Redraws; ends the application when the controller is leaving."""
        if self.controller.is_leaving and self._is_shown:
            self.application.exit()
        self.application.invalidate()

    def give_up(self, error: BaseException) -> None:
        """Ends the chat with an internal error."""
        if self._is_shown:
            self.application.exit(exception=error)

    def enter(self) -> None:
        typed = self.buffer.text
        if self.controller.enter(typed):
            self.buffer.reset(append_to_history=True)
        elif not typed.strip():
            self.buffer.reset()
        self.view.follow()
        self.refresh()

    def new_line(self) -> None:
        self.buffer.newline()

    def escape(self) -> None:
        if self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif not self.controller.interrupt(again=True):
            self.controller.notice = None
        self.refresh()

    def ctrl_c(self) -> None:
        """Interrupts the running turn; without one it clears the input; pressed again, it leaves."""
        if self.controller.interrupt():
            self.refresh()
            return
        again = time.monotonic() - self._ctrl_c_at < _TWICE_SECONDS
        self._ctrl_c_at = time.monotonic()
        self.buffer.reset()
        if again:
            self.controller.leave()
        else:
            is_idle = self.controller.current.log.open_turn is None
            self.controller.show("nothing runs; Ctrl-C again leaves" if is_idle else "Ctrl-C again leaves")
        self.refresh()

    def ctrl_d(self) -> None:
        if self.buffer.text:
            self.buffer.delete()
        else:
            self.controller.leave()
            self.refresh()

    def complete(self) -> None:
        if self.buffer.complete_state is not None:
            self.buffer.complete_next()
        else:
            self.buffer.start_completion(insert_common_part=True)

    def scroll_pages(self, pages: int) -> None:
        self.view.page(pages)

    def scroll_to_end(self) -> None:
        self.view.follow()

    def next_unread(self) -> None:
        self.controller.next_unread()

    def toggle_tools(self) -> None:
        self.controller.toggle_tools()

    def edit(self) -> None:
        self.buffer.open_in_editor()

    def suspend(self) -> None:
        self.application.suspend_to_background()

    @property
    def _is_shown(self) -> bool:
        return self.application.is_running and not self.application.is_done

    def _layout(self) -> Layout:
        search = SearchToolbar(backward_search_prompt="search: ", forward_search_prompt="search: ")
        placeholder = AfterInput(self._placeholder, style="class:placeholder")
        typing = BufferControl(
            self.buffer,
            search_buffer_control=search.control,
            preview_search=True,
            input_processors=[
                ConditionalProcessor(placeholder, Condition(lambda: not self.buffer.text) & ~is_searching),
            ],
        )
        input_window = Window(
            typing,
            height=Dimension(min=1, max=_INPUT_LINES_MAX),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=lambda number, wrapped: [("class:you", "❯ " if number + wrapped == 0 else "  ")],
        )
        rule = Window(height=1, char="─", style="class:rule")
        body = HSplit([Window(self.view, always_hide_cursor=True), rule, input_window])
        menu = CompletionsMenu(max_height=_INPUT_LINES_MAX, scroll_offset=1)
        floating = FloatContainer(body, [Float(menu, xcursor=True, ycursor=True)])
        status = Window(FormattedTextControl(self._status), height=1)
        return Layout(HSplit([floating, search, status]), focused_element=input_window)

    def _placeholder(self) -> StyleAndTextTuples:
        log = self.controller.current.log
        if self.controller.is_away:
            words = "away; what you type is sent when it is back"
        elif log.question is not None:
            words = "your answer"
        elif log.open_turn is not None and self.controller.current.mode:
            words = _WHILE_BUSY.get(self.controller.current.mode, "")
        else:
            words = "say something, or /help" if not log.items else ""
        return [("", words)]

    def _status(self) -> StyleAndTextTuples:
        """One line: session and state at the left, news at the right; parts that do not fit are left out."""
        room = self.application.output.get_size().columns - 1
        left: StyleAndTextTuples = [
            ("class:status.session", cut_middle(steady(one_line(self.controller.current.session)), 24))
        ]
        if self.controller.is_away:
            left.append(("class:status.away", " · away, trying to reach the supervisor"))
        else:
            left += [("class:status", f" · {part}") for part in self._standing()]
        right = self._news()
        used = sum(width(fragment[1]) for fragment in left)
        words = cut(right[1], max(0, room - used - 2)) if room - used > 6 else ""
        gap = " " * max(0, room - used - width(words))
        return [*left, ("", gap), (right[0], words)]

    def _standing(self) -> list[str]:
        conversation = self.controller.current
        log = conversation.log
        parts = [f"{conversation.mode} when busy"] if conversation.mode else []
        if count := len(log.waiting):
            parts.append(f"{count} {'held' if log.is_held else 'waiting'}")
        if self.controller.is_unfolded:
            parts.append("unfolded")
        return parts

    def _news(self) -> tuple[str, str]:
        if self.view.is_reading_back:
            return "class:status.news", "↓ Ctrl-End: newest"
        if unread := self.controller.unread:
            return "class:status.news", " ".join(f"• {steady(one_line(name))}" for name in unread[:3])
        return "class:status", "/help"


_WHILE_BUSY = {
    "interrupt": "a message interrupts what runs",
    "queue": "a message waits its turn",
    "steer": "a message steers what runs",
    "collect": "messages are collected for the next turn",
}
