"""Follows one accepted message: finds the turn that answers it, shows that turn, and reports its end."""

from typing import Any

from client.answering import Answering, outcome, why_given_up
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
_RESULTS = {"done": Exit.DONE, "interrupted": Exit.INTERRUPTED}


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
        self._answering = Answering(accepted.message)
        self._shown = shown
        self._ctrl_c = ctrl_c
        self._prompt = Prompt()
        # The fields of the question that is open.
        self._question: dict[str, Any] | None = None
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
            case Delta() if self._answering.take_delta(item):
                self._shown.show(item)
            case Noted() if item.turn in (self._answering.turn, self._answering.message):
                self._shown.show(item)
            case Refused() if self._answering.turn is not None:
                self._shown.remark(f"refused: {item.error} ({item.hint})")
            case Done() if item.unwritten and self._answering.turn in item.turns:
                self._shown.remark("\n".join(unwritten(item)))
                self._exit = Exit.INTERRUPTED
            case Done() if self._withdrawal is not None and self._answering.turn is None:
                self._exit = self._taken_back()

    def _is_ours(self, event: Event) -> bool:
        """Whether it is of this message or of its turn."""
        before = self._answering.turn
        is_ours = self._answering.take(event)
        turn = self._answering.turn
        if turn is not None and turn != before:
            self._shown.join_at(self._answering.begins_at)
        if turn is not None and event.fields.get("turn") == turn:
            self._note_question(event)
        return is_ours

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
        match outcome(event):
            case "given up" if self._withdrawal is not None:
                return self._taken_back()
            case "given up":
                reason, hint = why_given_up(fields)
                code = Exit.TURN_FAILED if event.type == "transcript.failed" else Exit.REFUSED
                raise CommandError(f"{self._answering.message} will not be answered: {reason}", hint, code)
            case "failed":
                failure = f"{fields['turn']} failed: {fields.get('error', 'no reason was given')}"
                raise CommandError(failure, fields.get("hint") or "hermesctl status", Exit.TURN_FAILED)
            case "done" | "interrupted" as result:
                return _RESULTS[result]
        return None

    def _taken_back(self) -> Exit:
        self._shown.remark(f"{self._answering.message} was taken back before its turn")
        return Exit.INTERRUPTED

    def _stop(self) -> None:
        """Requests the end of the turn once, or takes the message back while it has none."""
        session, turn = self._session, self._answering.turn
        if turn is not None and self._stop_asked_of != turn:
            self._stop_asked_of = turn
            self._shown.remark(f"interrupting {turn} … (Ctrl-C again leaves at once)")
            self._stream.client.post(Interrupt(session, by="hermesctl", expect_turn=turn))
        elif turn is None and self._withdrawal is None:
            drop = Queue(session, "drop", self._answering.message)
            self._withdrawal = self._stream.client.post(drop)
