"""Lines that begin with a slash: one table of commands, which also makes /help and the completion."""

import difflib
import io
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from hermesctl.chat.controller import Controller
from hermesctl.chat.keys import KEYS
from hermesctl.chat.session_log import Item, Message
from hermesctl.chat.turn import Turn
from hermesctl.errors import CommandError
from hermesctl.render import Column, age, ago, cut, one_line, plain, table
from hermesctl.story import sentences, without_texts
from ipc.messages import Answer, BusyMode, Done, Queue, Respond, Show, Table

MODES: tuple[BusyMode, ...] = get_args(BusyMode)
QUEUE_ACTS = ("list", "drop", "clear", "resume")
# Rows of a table that are still readable inside a chat.
_ROWS_MAX = 20


@dataclass(frozen=True)
class Command:
    name: str
    arguments: str
    says: str
    act: Callable[[Controller, str], None]


class Wrong(CommandError):
    """A command that cannot be carried out as typed."""


def run(controller: Controller, line: str) -> bool:
    """Runs a typed command; a wrong one shows its fault and stays in the input."""
    name, _, rest = line.partition(" ")
    try:
        _find(name.strip()).act(controller, rest.strip())
    except Wrong as error:
        controller.show_fault(error.fault, error.hint)
        return False
    return True


def _find(name: str) -> Command:
    if name in COMMANDS:
        return COMMANDS[name]
    if len(begun := [each for each in COMMANDS if each.startswith(name)]) == 1:
        return COMMANDS[begun[0]]
    near = begun or difflib.get_close_matches(name, COMMANDS, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "/help lists the commands"
    raise Wrong(f"there is no command {one_line(name)}", f"{hint}  (// sends a line that begins with /)")


def _help(controller: Controller, rest: str) -> None:
    lines = [f"{each.name + ' ' + each.arguments:20}  {each.says}" for each in COMMANDS.values()]
    lines += ["", *(f"{key.name:20}  {key.says}" for key in KEYS)]
    controller.show(*lines, "", "// sends a line that begins with a slash")


def _interrupt(controller: Controller, rest: str) -> None:
    if rest not in ("", "drop"):
        raise Wrong(f"/interrupt does not know {one_line(rest)}", "/interrupt, or /interrupt drop")
    if not controller.interrupt(drop=rest == "drop"):
        controller.show(
            "the supervisor is away" if controller.is_away else "nothing runs, or it is being stopped"
        )


def _queue(controller: Controller, rest: str) -> None:
    act, _, which = rest.partition(" ")
    session = controller.current.session
    match act or "list":
        case "list":
            controller.show(*_waiting_lines(controller))
        case "drop":
            message = _waiting(controller, which.strip())
            controller.ask(Queue(session, "drop", message), _saying(controller, "taken back"))
        case "clear":
            controller.ask(Queue(session, "clear"), _saying(controller, "nothing waits any more"))
        case "resume":
            controller.ask(Queue(session, "resume"), _saying(controller, "what waits goes on"))
        case _:
            raise Wrong(f"/queue does not know {one_line(act)}", f"/queue {'|'.join(QUEUE_ACTS)}")


def _waiting_lines(controller: Controller) -> Iterable[str]:
    waiting = controller.current.log.waiting
    for number, message in enumerate(waiting, 1):
        words = one_line(message.text) or f"🎙️ {message.state}"
        yield f"{number}  {cut(words, 60)}  ({ago(message.at)}, {message.busy or 'waiting'})"
    if not waiting:
        yield "nothing waits"
    elif controller.current.log.is_held:
        yield "held by the interrupt: /queue resume, or the next message, lets them go"


def _waiting(controller: Controller, which: str) -> str:
    """Returns a waiting message by its number in the list, or by its id."""
    waiting = controller.current.log.waiting
    if which.isdecimal() and 1 <= int(which) <= len(waiting):
        return waiting[int(which) - 1].id
    if any(message.id == which for message in waiting):
        return which
    raise Wrong(f"nothing waits under {one_line(which) or 'that'}", "/queue lists what waits by its number")


def _saying(controller: Controller, words: str) -> Callable[[Answer], None]:
    def done(answer: Answer) -> None:
        if isinstance(answer, Done):
            controller.show(one_line(answer.note) or words)

    return done


def _voice(controller: Controller, rest: str) -> None:
    import os

    try:
        parts = shlex.split(rest)
    except ValueError:
        parts = [rest]
    if len(parts) != 1:
        raise Wrong(
            "/voice takes one sound file", 'for example /voice note.ogg; quote a name with spaces: "…"'
        )
    controller.send_clip(os.path.expanduser(parts[0]))


def _session(controller: Controller, rest: str) -> None:
    if not rest:
        raise Wrong("/session takes a name", "/sessions lists them; a new name begins a new session")
    controller.switch(rest)


def _sessions(controller: Controller, rest: str) -> None:
    def show(answer: Answer) -> None:
        if isinstance(answer, Table):
            unread = set(controller.unread)
            rows = [row | {"mark": _mark(controller, row, unread)} for row in answer.rows]
            controller.show(*_tabled(_SESSION_COLUMNS, rows), "", "/session NAME goes to one, or begins it")

    controller.ask(Show("sessions", limit=_ROWS_MAX), show)


def _mark(controller: Controller, row: dict[str, Any], unread: set[str]) -> str:
    if row["session"] == controller.current.session:
        return "❯"
    return "•" if row["session"] in unread else " "


def _busy(controller: Controller, rest: str) -> None:
    conversation = controller.current
    if rest == "default":
        conversation.busy = None
    elif rest in MODES:
        conversation.busy = next(mode for mode in MODES if mode == rest)
    elif rest:
        raise Wrong(f"there is no busy mode {one_line(rest)}", f"/busy {'|'.join(MODES)}|default")
    whose = "chosen here" if conversation.busy else "as the session is set"
    controller.show(f"a message to a busy session: {conversation.mode or 'not known yet'} ({whose})")


def _retry(controller: Controller, rest: str) -> None:
    if not rest:
        rest = next(filter(None, map(_retryable, reversed(controller.current.log.items))), "")
    if not rest:
        raise Wrong("nothing here has failed or was interrupted", "/retry TURN names an older turn")
    controller.retry(rest)


def _retryable(item: Item) -> str:
    """Returns the id under which an item can be retried, or nothing."""
    if isinstance(item, Turn | Message) and item.state in ("failed", "interrupted", "not understood"):
        return item.id
    return ""


def _why(controller: Controller, rest: str) -> None:
    last = controller.current.log.last_turn
    if not (id := rest or (last.id if last else "")):
        raise Wrong("nothing has happened here yet", "/why ID tells of a message or a turn")

    def show(answer: Answer) -> None:
        if not isinstance(answer, Table):
            return
        if answer.rows:
            controller.show(*sentences([without_texts(row) for row in answer.rows]))
        else:
            controller.show_fault(
                f"there is no message or turn {one_line(id)}", "hermesctl turns lists the turns"
            )

    controller.ask(Show("story", id=id), show)


def _open_question(controller: Controller, rest: str) -> tuple[str, str]:
    """Returns a question's id and the words after it; without an id, the open question of this session."""
    name, _, words = rest.partition(" ")
    if "#" in name and "/" in name:
        return name, words.strip()
    question = controller.current.log.question
    if question is None:
        raise Wrong("no question is open here", "/questions lists them all; /answer ID TEXT names one")
    return question.id, question.meant_by(rest)


def _answer(controller: Controller, rest: str) -> None:
    question, words = _open_question(controller, rest)
    if not words:
        raise Wrong("the answer is empty", "/answer TEXT, or /answer ID TEXT")
    controller.ask(Respond(question, words, "hermesctl"), _saying(controller, f"{question} is answered"))


def _approve(controller: Controller, rest: str) -> None:
    controller.ask(
        Respond(_open_question(controller, rest)[0], "yes", "hermesctl"), _saying(controller, "approved")
    )


def _deny(controller: Controller, rest: str) -> None:
    controller.ask(
        Respond(_open_question(controller, rest)[0], "no", "hermesctl"), _saying(controller, "denied")
    )


def _questions(controller: Controller, rest: str) -> None:
    def show(answer: Answer) -> None:
        if isinstance(answer, Table):
            controller.show(*(_tabled(_QUESTION_COLUMNS, answer.rows) if answer.rows else ["no questions"]))

    controller.ask(Show("questions", limit=_ROWS_MAX), show)


def _status(controller: Controller, rest: str) -> None:
    def show(answer: Answer) -> None:
        if isinstance(answer, Table) and answer.rows:
            controller.show(*_status_lines(answer.rows[0]))

    controller.ask(Show("status"), show)


def _status_lines(row: dict[str, Any]) -> Iterable[str]:
    shown = {name: plain(value) for name, value in row.items()}
    yield f"{shown.get('state')}, version {shown.get('version')}, up {age(row.get('uptime_seconds'))}"
    yield f"model    {shown.get('model')}"
    yield f"workers  {shown.get('busy')} busy, {shown.get('idle')} idle, {shown.get('seats')} seats"
    waiting = f"{shown.get('waiting')} messages waiting"
    yield f"turns    {shown.get('running')} running, {shown.get('asking')} asking; {waiting}"
    yield from (f"! {one_line(hint)}" for hint in row.get("hints") or ())


def _tools(controller: Controller, rest: str) -> None:
    controller.toggle_tools()


def _older(controller: Controller, rest: str) -> None:
    if controller.current.log.first_seq <= 1:
        controller.show("this is the beginning")
    controller.read_earlier()


def _quit(controller: Controller, rest: str) -> None:
    controller.leave()


_SESSION_COLUMNS = (
    Column("mark", ""),
    Column("session", "session"),
    Column("state", "state"),
    Column("waiting", "waiting", right=True),
    Column("last_at", "last seen", ago, right=True),
)
_QUESTION_COLUMNS = (
    Column("question", "question"),
    Column("at", "asked", ago, right=True),
    Column("text", "text", lambda text: cut(plain(text), 40)),
)


def _tabled(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> list[str]:
    return table(columns, rows, io.StringIO()).splitlines()


COMMANDS = {
    each.name: each
    for each in (
        Command("/help", "", "this list", _help),
        Command("/interrupt", "[drop]", "stop what runs; drop empties the queue too", _interrupt),
        Command("/queue", "[list|drop N|clear|resume]", "what waits behind the running turn", _queue),
        Command("/busy", "[MODE]", "what a message does to a running turn, in this chat", _busy),
        Command("/voice", "FILE", "send a sound file; its words are shown", _voice),
        Command("/session", "NAME", "go to another session, or begin one", _session),
        Command("/sessions", "", "the sessions, and which have news", _sessions),
        Command("/questions", "", "what agents wait for, in every session", _questions),
        Command("/answer", "[ID] TEXT", "answer a question; here, plain words do too", _answer),
        Command("/approve", "[ID]", "answer yes", _approve),
        Command("/deny", "[ID]", "answer no", _deny),
        Command("/retry", "[TURN]", "have a failed or interrupted turn answered after all", _retry),
        Command("/why", "[ID]", "the story of the last turn, or of any turn or message", _why),
        Command("/tools", "", "unfold or fold what tools did", _tools),
        Command("/older", "", "what was said earlier", _older),
        Command("/status", "", "how the service is doing", _status),
        Command("/quit", "", "leave; what runs goes on", _quit),
    )
}
