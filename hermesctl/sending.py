"""Follows one accepted message: finds the turn that answers it, shows that turn, and reports its end."""

from typing import Any

from hermesctl.answer_stream import Shown
from hermesctl.choices import meant_by
from hermesctl.command_result import tell
from hermesctl.ctrlc import CtrlC
from hermesctl.errors import CommandError
from hermesctl.event_format import unwritten
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.question_prompt import Prompt
from ipc.messages import Accepted, Answer, Delta, Done, Event, Interrupt, Noted, Queue, Refused, Respond

# A supervisor that restarts is back within seconds; after this the command gives up.
_RETURN_SECONDS = 60.0
_RESULTS = {"turn.done": Exit.DONE, "turn.interrupted": Exit.INTERRUPTED}
# Events with which a turn takes a message.
_TAKEN = frozenset({"turn.opened", "turn.joined", "turn.steered", "question.answered"})
# Events that end a message without a turn.
_GIVEN_UP = frozenset({"message.refused", "message.dropped", "transcript.failed"})


def tell_accepted(form: str, session: str, accepted: Accepted) -> Exit:
    """The output of a command that does not wait for the answer."""
    known = {"session": session, "message": accepted.message, "seq": accepted.seq}
    tell(form, accepted.message, **known, again=accepted.again, note=accepted.note)
    return Exit.DONE


class Sending:
    """One message that was accepted, until its turn has ended; `stream` was opened before it was sent."""

    def __init__(
        self, stream: EventStream, session: str, accepted: Accepted, shown: Shown, ctrl_c: CtrlC
    ) -> None:
        self._stream = stream
        self._session = session
        self._message = accepted.message
        self._shown = shown
        self._ctrl_c = ctrl_c
        self._prompt = Prompt()
        # The fields of the question that is open.
        self._question: dict[str, Any] | None = None
        self._turn: str | None = None
        # Length of the text of each turn of the session, for a message that joins a running turn.
        self._offsets: dict[str, int] = {}
        self._stop_asked_of: str | None = None
        self._withdrawal: int | None = None
        self._exit: Exit | None = None
        if accepted.note:
            shown.remark(f"· {accepted.note}")
        if accepted.again:
            stream.rewind(max(0, accepted.seq - 1))

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
            case Event() if self._is_ours(item):
                self._shown.show(item)
                self._exit = self._ending(item)
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

    def _is_ours(self, event: Event) -> bool:
        """Whether it is of this message or of its turn, which an event of the message names."""
        fields = event.fields
        names_us = self._message in (fields.get("message"), *(fields.get("messages") or ()))
        if names_us and event.type in _TAKEN and fields["turn"] != self._turn:
            self._turn = fields["turn"]
            self._shown.join_at(self._offsets.get(fields["turn"], 0))
        is_of_turn = self._turn is not None and fields.get("turn") == self._turn
        if is_of_turn:
            self._note_question(event)
        return names_us or is_of_turn

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
