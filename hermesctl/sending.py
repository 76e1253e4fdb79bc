"""Sends one message: finds the turn that answers it, shows that turn, and reports its end."""

from typing import Any, Protocol

from hermesctl.answer_stream import AnswerPrinter
from hermesctl.choices import meant_by
from hermesctl.command_result import tell
from hermesctl.ctrlc import CtrlC
from hermesctl.errors import CommandError
from hermesctl.event_format import arguments, finish, gist, json_line, proof, unwritten
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.question_prompt import Prompt, question_lines
from hermesctl.render import aside, cut
from ipc.messages import (
    Accepted,
    Answer,
    Delta,
    Done,
    Event,
    Interrupt,
    Noted,
    Queue,
    Refused,
    Respond,
    Retry,
    Submit,
)

# A supervisor that restarts is back within seconds; after this the command gives up.
_RETURN_SECONDS = 60.0
_RESULTS = {"turn.done": Exit.DONE, "turn.interrupted": Exit.INTERRUPTED}
# Enough of a call's arguments to tell it from another.
_LABEL_WIDTH = 40
# The tool by which an agent asks: the question itself follows at once.
_ASKING = "ask"
# Events with which a turn takes a message.
_TAKEN = frozenset({"turn.opened", "turn.joined", "turn.steered", "question.answered"})
# Events that end a message without a turn.
_GIVEN_UP = frozenset({"message.refused", "message.dropped", "transcript.failed"})


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


def tell_accepted(form: str, session: str, accepted: Accepted) -> Exit:
    """The output of a command that does not wait for the answer."""
    known = {"session": session, "message": accepted.message, "seq": accepted.seq}
    tell(form, accepted.message, **known, again=accepted.again, note=accepted.note)
    return Exit.DONE


class Sending:
    """Submits one message and waits until its turn has ended."""

    def __init__(
        self, stream: EventStream, session: str, request: Submit | Retry, shown: Shown, ctrl_c: CtrlC
    ) -> None:
        self._stream = stream
        self._session = session
        self._request = request
        self._shown = shown
        self._ctrl_c = ctrl_c
        self._prompt = Prompt()
        # The fields of the question that is open.
        self._question: dict[str, Any] | None = None
        self._message = ""
        self._turn: str | None = None
        # Length of the text of each turn of the session, for a message that joins a running turn.
        self._offsets: dict[str, int] = {}
        self._stop_asked_of: str | None = None
        self._withdrawal: int | None = None
        self._exit: Exit | None = None

    def submit(self) -> Accepted:
        accepted = self._stream.client.ask(self._request, Accepted)
        self._message = accepted.message
        if accepted.note:
            self._shown.remark(f"· {accepted.note}")
        if accepted.again:
            self._stream.rewind(max(0, accepted.seq - 1))
        return accepted

    def follow_to_the_end(self) -> Exit:
        while self._exit is None:
            if self._ctrl_c.presses:
                self._stop()
            if self._question is not None and (typed := self._prompt.line()):
                self._respond(self._question, typed)
            item = self._stream.next()
            if item is not None:
                self._take(item)
            elif self._stream.is_lost():
                self._shown.remark("the supervisor is gone; waiting for it to return …")
                self._stream.reconnect(_RETURN_SECONDS)
                self._stop_asked_of = self._withdrawal = None
        return self._exit

    def _take(self, item: Answer) -> None:
        match item:
            case Event():
                self._take_event(item)
            case Delta():
                if item.turn == self._turn:
                    self._shown.show(item)
                self._offsets = {item.turn: item.offset + len(item.text)}
            case Noted() if item.turn in (self._turn, self._message):
                self._shown.show(item)
            case Refused() if self._turn is not None:
                self._shown.remark(f"refused: {item.error} ({item.hint})")
            case Done() if item.unwritten and self._turn in item.turns:
                self._shown.remark("\n".join(unwritten(item)))
                self._exit = Exit.INTERRUPTED
            case Done() if self._withdrawal is not None and self._turn is None:
                self._exit = self._taken_back()

    def _take_event(self, event: Event) -> None:
        fields = event.fields
        is_ours = self._message in (fields.get("message"), *(fields.get("messages") or ()))
        if is_ours and event.type in _TAKEN and fields["turn"] != self._turn:
            self._turn = fields["turn"]
            self._shown.join_at(self._offsets.get(fields["turn"], 0))
        if self._turn is not None and fields.get("turn") == self._turn:
            self._note_question(event)
        if is_ours or (self._turn is not None and fields.get("turn") == self._turn):
            self._shown.show(event)
            self._exit = self._ending(event)

    def _respond(self, question: dict[str, Any], typed: str) -> None:
        choices = [str(choice) for choice in question.get("choices") or ()]
        text = meant_by(typed, str(question.get("kind")), choices)
        self._stream.client.post(Respond(str(question.get("question")), text, "hermesctl"))

    def _note_question(self, event: Event) -> None:
        if event.type == "question.asked":
            self._question = event.fields
            self._prompt.open()
        elif event.type == "question.answered":
            self._question = None

    def _ending(self, event: Event) -> Exit | None:
        """Done and interrupted are results; a failure ends the command with its reason."""
        fields = event.fields
        if event.type in _GIVEN_UP:
            if self._withdrawal is not None:
                return self._taken_back()
            reason = (
                fields.get("reason") or fields.get("error") or f"dropped by {fields.get('by', 'a client')}"
            )
            hint = fields.get("hint") or "send it again"
            code = Exit.TURN_FAILED if event.type == "transcript.failed" else Exit.REFUSED
            raise CommandError(f"{self._message} will not be answered: {reason}", hint, code)
        if event.type == "turn.failed":
            error, hint = fields.get("error", "no reason was given"), fields.get("hint") or "hermesctl status"
            raise CommandError(f"{fields['turn']} failed: {error}", hint, Exit.TURN_FAILED)
        return _RESULTS.get(event.type)

    def _taken_back(self) -> Exit:
        self._shown.remark(f"{self._message} was taken back before its turn")
        return Exit.INTERRUPTED

    def _stop(self) -> None:
        """Requests the end of the turn once, or takes the message back while it has none."""
        session = self._session
        if self._turn is not None and self._stop_asked_of != self._turn:
            self._stop_asked_of = self._turn
            self._shown.remark(f"interrupting {self._turn} … (Ctrl-C again leaves at once)")
            self._stream.client.post(Interrupt(session, by="hermesctl", expect_turn=self._turn))
        elif self._turn is None and self._withdrawal is None:
            self._withdrawal = self._stream.client.post(Queue(session, "drop", self._message))
