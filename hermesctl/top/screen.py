"""The screen of `top`: draws the model and turns keys into actions; it computes nothing itself."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from hermesctl.render import Line, cut, grid, one_line
from hermesctl.top.dialogs import Confirm, Reading
from hermesctl.top.frame import cut_line, head, tabs
from hermesctl.top.polling import Act, Outcome, Watch
from hermesctl.top.sample import Row, Sample, Trail
from hermesctl.top.selection import TABS, View
from ipc.messages import Drain, Interrupt, Scale, Show, Undrain
from ipc.places import Places

KEYS = (
    ("↑ ↓", "select a row (also k j, PgUp PgDn, Home End)"),
    ("i", "interrupt the selected turn, with all it has started"),
    ("w Enter", "why: the story of the selected turn"),
    ("d", "drain: take no new turns; again: take them"),
    ("+ -", "one busy seat more or less"),
    ("s", "order by the next column"),
    ("/", "show only rows with these words; Esc shows all"),
    ("Tab 1 2 3", "sessions, seats, services"),
    ("?", "this help"),
    ("q", "quit"),
)
# From this many lines on a blank line separates the head from the table.
_ROOMY = 30
_SHORT = "i interrupt · w why · d drain · +- seats · s order · / only · ? help · q quit"


def coloured(line: Line) -> Text:
    """Renders pieces literally: nothing in them is markup."""
    return Text.assemble(*line, no_wrap=True, overflow="crop")


def faded(line: Line) -> Line:
    """Renders data that is out of date."""
    return tuple((text, "dim") for text, _ in line)


class Seen(Message):
    def __init__(self, found: Sample | str) -> None:
        super().__init__()
        self.found = found


class Acted(Message):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


class Top(App[None]):
    """`hermesctl top`."""

    CSS = """
    Screen { layout: vertical; }
    #head, #tabs, #note, #keys { height: auto; padding: 0 1; }
    #rows { height: 1fr; padding: 0 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True),
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown", "move(10)"),
        Binding("home", "move(-100000)"),
        Binding("end", "move(100000)"),
        Binding("i", "interrupt"),
        Binding("w,enter", "why"),
        Binding("d", "drain"),
        Binding("plus,equals_sign", "scale(1)"),
        Binding("minus", "scale(-1)"),
        Binding("s", "order"),
        Binding("slash", "filter"),
        Binding("escape", "all"),
        Binding("tab", "next_tab", priority=True),
        Binding("1", "tab(0)"),
        Binding("2", "tab(1)"),
        Binding("3", "tab(2)"),
        Binding("question_mark,h", "help"),
    ]

    def __init__(self, places: Places, interval_seconds: float) -> None:
        super().__init__(ansi_color=True)
        self._view = View()
        self._trail = Trail()
        self._sample: Sample | None = None
        self._missing = "looking for the supervisor …"
        self._note: Line = ()
        self._is_typing = False
        self._watch = Watch(
            places,
            interval_seconds,
            seen=lambda found: self._deliver_later(Seen(found)),
            on_outcome=lambda outcome: self._deliver_later(Acted(outcome)),
        )

    def compose(self) -> ComposeResult:
        for name in ("head", "tabs", "rows", "note", "keys"):
            yield Static(id=name, markup=False)

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self._draw()
        self._watch.start()

    def on_unmount(self) -> None:
        self._watch.end()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_seen(self, message: Seen) -> None:
        if isinstance(message.found, Sample):
            self._sample = message.found
            self._missing = ""
            self._trail.add(message.found)
        else:
            self._missing = f"{one_line(message.found)}, waiting for it to return"
        self._draw()

    def on_acted(self, message: Acted) -> None:
        outcome = message.outcome
        if outcome.story:
            self.push_screen(Reading(one_line(outcome.sentence), outcome.story))
        else:
            self._tell(outcome.sentence, "green" if outcome.went_well else "red")

    def on_key(self, event: Key) -> None:
        """While the filter is typed, keys are letters of it; the very next one may already be."""
        if not self._is_typing or isinstance(self.screen, ModalScreen):
            return
        event.stop()
        event.prevent_default()
        if event.key in ("enter", "escape"):
            self._is_typing = False
        if event.key in ("escape", "ctrl+u"):
            self._view.filter = ""
        elif event.key == "backspace":
            self._view.filter = self._view.filter[:-1]
        elif event.is_printable and event.character:
            self._view.filter += event.character
        self._draw()

    def action_move(self, by: int) -> None:
        self._view.move(self._rows(), by)
        self._draw()

    def action_order(self) -> None:
        self._view.next_order()
        self._draw()

    def action_next_tab(self) -> None:
        self._view.next_tab()
        self._draw()

    def action_tab(self, number: int) -> None:
        self._view.show(TABS[number])
        self._draw()

    def action_filter(self) -> None:
        self._is_typing = True
        self._draw()

    def action_all(self) -> None:
        self._view.filter = ""
        self._draw()

    def action_help(self) -> None:
        lines = [f"{keys:<10} {what}" for keys, what in KEYS]
        self.push_screen(Reading("keys", lines))

    def action_why(self) -> None:
        turn = self._turn()
        if turn is None:
            self._tell("the selected row has no turn now", "yellow")
        else:
            self._ask(Show("story", id=turn))

    def action_interrupt(self) -> None:
        row, turn = self._view.chosen(self._rows()), self._turn()
        if row is None or turn is None:
            self._tell("nothing runs in the selected row", "yellow")
            return
        act = Interrupt(str(row["session"]), "hermesctl top", expect_turn=turn)
        self._confirm(f"Interrupt {one_line(turn)}, with everything it has started?", act)

    def action_drain(self) -> None:
        if self._sample is None:
            return
        if self._sample.status.get("draining"):
            self._ask(Undrain())
        else:
            self._confirm("Drain: take no new turns and let the running ones finish?", Drain())

    def action_scale(self, by: int) -> None:
        seats = self._sample.status.get("seats") if self._sample else None
        if isinstance(seats, int):
            self._ask(Scale(seats=max(1, seats + by)))

    def _confirm(self, question: str, act: Act) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._ask(act)
            else:
                self._tell("left as it is", "dim")

        self.push_screen(Confirm(question), answered)

    def _ask(self, act: Act) -> None:
        if self._missing:
            self._tell("the supervisor is not running", "red")
        else:
            self._watch.ask(act)

    def _deliver_later(self, message: Message) -> None:
        """Called from the polling thread; does nothing when the screen has closed."""
        if self.is_running:
            self.post_message(message)

    def _tell(self, sentence: str, colour: str) -> None:
        self._note = ((sentence, colour),)
        self._draw()

    def _rows(self) -> list[Row]:
        return self._view.rows(self._sample) if self._sample else []

    def _turn(self) -> str | None:
        row = self._view.chosen(self._rows())
        turn = row.get("turn") if row else None
        return str(turn) if turn else None

    def _draw(self) -> None:
        room = max(20, self.size.width - 2)
        self.query_one("#tabs").styles.margin = (1 if self.size.height >= _ROOMY else 0, 0, 0, 0)
        self._put("head", self._head(room))
        self._put("tabs", [tabs(self._view, self._sample, room)])
        typed: Line = (("only rows with: ", "dim"), (self._view.filter, ""), ("▏", "bold"))
        self._put("note", [cut_line(typed if self._is_typing else self._note, room)])
        self._put("keys", [((cut(_SHORT, room), "dim"),)])
        self._put("rows", self._table(room))

    def _head(self, room: int) -> list[Line]:
        missing = [cut_line(((f"○ {self._missing}", "red"),), room)] if self._missing else []
        if self._sample is None:
            return missing
        lines = head(self._sample, self._trail, room)
        return [*missing, *map(faded, lines[1:])] if missing else lines

    def _table(self, room: int) -> list[Line]:
        rows = self._rows()
        if not rows:
            return [(("nothing to show", "dim"),)]
        height = max(1, self.query_one("#rows").size.height - 1)
        shown = self._view.window(rows, height)
        heading, *lines = grid(self._view.columns, shown, room)
        at = self._view.place(rows) - self._view.first
        if self._missing:
            return [heading, *map(faded, lines)]
        lines[at] = (("".join(text for text, _ in lines[at]), "reverse"),)
        return [heading, *lines]

    def _put(self, name: str, lines: Iterable[Line]) -> None:
        self.query_one(f"#{name}", Static).update(Text("\n").join(coloured(line) for line in lines))
