"""Journal rows as plain dicts: a record that does not find the state it was decided on undoes its batch."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import count
from typing import Any

from supervisor.core import records as told
from supervisor.core.reasons import Reason
from supervisor.core.records import Record
from supervisor.core.state import Question, TurnState
from supervisor.journal.errors import JournalFenced

Row = dict[str, Any]
WAITING = ("transcribing", "waiting")
_AttemptRecord = (
    told.AttemptStreamed | told.ToolCallStarted | told.ToolCallFinished | told.TurnSteered | told.TurnDone
)
_Ending = told.TurnInterrupted | told.TurnFailed


class Book:
    """A session row holds its open turn and messages; a turn row its question; an attempt row its calls."""

    def __init__(self) -> None:
        self.sessions: dict[str, Row] = {}
        self.messages: dict[str, Row] = {}
        self.turns: dict[str, Row] = {}
        self.attempts: dict[tuple[str, int], Row] = {}
        self.events: dict[tuple[str, int], Record] = {}
        self.cursors: dict[str, dict[str, int]] = {}
        self.begun: dict[str, str] = {}
        self._positions = count(1)
        self._undo: list[Callable[[], object]] = []

    def write(self, records: Sequence[Record]) -> None:
        """Write all records or, with JournalFenced, none."""
        self._undo.clear()
        try:
            for record in records:
                self._apply(record)
        except JournalFenced:
            for undo in reversed(self._undo):
                undo()
            raise

    def _insert(self, table: dict[Any, Any], key: object, row: object, record: Record) -> None:
        _fence(key not in table, record)
        table[key] = row
        self._undo.append(lambda: table.pop(key))

    def _update(self, row: Row, **values: object) -> None:
        before = {name: row[name] for name in values}
        self._undo.append(lambda: row.update(before))
        row.update(values)

    def _apply(self, record: Record) -> None:
        _fence(_is_writable(record), record)
        if record.seq:
            self._tell(record)
        session = self.sessions.get(record.session)
        _fence(session is not None, record)
        assert session is not None
        match record:
            case told.MessageAccepted():
                self._message_accepted(session, record)
            case told.TranscriptReady():
                message = self._message(record, record.message, ("transcribing",))
                self._update(message, state="waiting", text=record.text)
            case told.TranscriptFailed() | told.MessageDropped():
                states = WAITING if isinstance(record, told.MessageDropped) else ("transcribing",)
                self._leave(session, self._message(record, record.message, states), "gone")
            case told.SessionBegun():
                _fence(record.seq == 1, record)
                self._insert(self.begun, record.session, record.key, record)
            case told.SessionHeld():
                _fence(session["held"] == 0, record)
                self._update(session, held=record.seq)
            case told.SessionReleased():
                _fence(session["held"] > 0, record)
                self._update(session, held=0)
            case told.SessionGiven():
                pass  # the journal in memory does not know which host has a session
            case told.CursorMoved():
                self._cursor_moved(session, record)
            case told.TurnOpened():
                self._turn_opened(session, record)
            case told.TurnJoined():
                self._turn_joined(session, record)
            case told.AttemptOpened():
                self._attempt_opened(record)
            case told.AttemptStopped():
                attempt = self.attempts.get((record.turn, record.attempt))
                _fence(attempt is not None and attempt["state"] == "open", record)
                assert attempt is not None
                self._update(attempt, state="stopped", verdict=record.verdict)
                self._update(self.turns[record.turn], question=None)
            case told.AttemptStuck():
                pass  # an event only: stuck processes are not durable state
            case told.AttemptLost():
                self._attempt_lost(record)
            case told.QuestionAsked():
                self._question_asked(record)
            case told.QuestionAnswered():
                self._question_answered(session, record)
            case told.TurnInterrupted() | told.TurnFailed():
                self._turn_ended(session, record)
            case _:
                assert isinstance(record, _AttemptRecord)
                self._of_open_attempt(session, record)

    def _tell(self, record: Record) -> None:
        if record.seq == 1:
            row: Row = {"seq": 1, "turns": 0, "held": 0, "turn": None, "waiting": ()}
            self._insert(self.sessions, record.session, row, record)
        else:
            found = self.sessions.get(record.session)
            _fence(found is not None and found["seq"] == record.seq - 1, record)
            assert found is not None
            self._update(found, seq=record.seq)
        self._insert(self.events, (record.session, record.seq), record, record)

    # --- messages -------------------------------------------------------------------------------------------

    def _message_accepted(self, session: Row, record: told.MessageAccepted) -> None:
        row: Row = {"id": record.message, "session": record.session, "text": record.text, "busy": record.busy}
        row |= {"at": record.at, "clip": record.clip, "seq": record.seq}
        row |= {"by": record.by, "agent": record.agent, "instructions": record.instructions}
        row |= {"state": "transcribing" if record.clip else "waiting", "position": next(self._positions)}
        self._insert(self.messages, record.message, row, record)
        self._update(session, waiting=(*session["waiting"], record.message))

    def _message(self, record: Record, id: str, states: tuple[str, ...]) -> Row:
        row = self.messages.get(id)
        _fence(row is not None and row["session"] == record.session and row["state"] in states, record)
        assert row is not None
        return row

    def _leave(self, session: Row, message: Row, state: str) -> None:
        self._update(message, state=state)
        self._update(session, waiting=tuple(each for each in session["waiting"] if each != message["id"]))

    def _cursor_moved(self, session: Row, record: told.CursorMoved) -> None:
        cursors = self.cursors.setdefault(record.session, {})
        stands_at = cursors.get(record.cursor, record.before)
        _fence(stands_at == record.before < record.seen <= session["seq"], record)
        if record.cursor in cursors:
            self._update(cursors, **{record.cursor: record.seen})
        else:
            self._insert(cursors, record.cursor, record.seen, record)

    # --- turns ----------------------------------------------------------------------------------------------

    def _turn(self, record: Record, id: str, attempts: int, state: str) -> Row:
        row = self.turns.get(id)
        fits = row is not None and row["session"] == record.session
        _fence(fits and row is not None and (row["attempts"], row["state"]) == (attempts, state), record)
        assert row is not None
        return row

    def _turn_opened(self, session: Row, record: told.TurnOpened) -> None:
        _fence((session["turns"], session["held"], session["turn"]) == (record.number - 1, 0, None), record)
        messages = [self._message(record, each, ("waiting",)) for each in record.messages]
        for message in messages:
            self._leave(session, message, "taken")
        row: Row = {"id": record.turn, "session": record.session, "state": "queued", "attempts": 0}
        row |= {"messages": record.messages, "opened_at": record.at, "losses": 0, "agent": record.agent}
        row |= {"content_at": max(message["at"] for message in messages)}
        row |= {"question": None, "questions": 0, "position": next(self._positions)}
        self._insert(self.turns, record.turn, row, record)
        self._update(session, turns=record.number, turn=record.turn)

    def _turn_joined(self, session: Row, record: told.TurnJoined) -> None:
        turn = self._turn(record, record.turn, 0, "queued")
        messages = [self._message(record, each, ("waiting",)) for each in record.messages]
        for message in messages:
            self._leave(session, message, "taken")
        content_at = max(message["at"] for message in messages)
        self._update(turn, messages=(*turn["messages"], *record.messages), content_at=content_at)

    def _attempt_opened(self, record: told.AttemptOpened) -> None:
        turn = self._turn(record, record.turn, record.attempt - 1, "queued")
        self._update(turn, state="running", attempts=record.attempt)
        row: Row = {"state": "open", "who": record.who, "opened_at": record.at, "level": record.level}
        row |= {"text": "", "calls": {}, "verdict": None, "spent": (0, 0, 0)}
        self._insert(self.attempts, (record.turn, record.attempt), row, record)

    def _open_attempt(self, record: Record, turn: str, attempt: int) -> tuple[Row, Row]:
        found = self._turn(record, turn, attempt, "running")
        row = self.attempts[turn, attempt]
        _fence(row["state"] == "open", record)
        return found, row

    def _of_open_attempt(self, session: Row, record: _AttemptRecord) -> None:
        turn, attempt = self._open_attempt(record, record.turn, record.attempt)
        calls: dict[str, str] = attempt["calls"]
        self._update(turn, content_at=record.at)
        match record:
            case told.AttemptStreamed():
                _fence(len(attempt["text"]) == record.offset, record)
                self._update(attempt, text=attempt["text"] + record.text)
            case told.ToolCallStarted():
                spent = record.input_tokens, record.output_tokens, record.cost
                self._update(attempt, calls=calls | {record.call: record.name}, spent=spent)
            case told.ToolCallFinished():
                _fence(record.call in calls, record)
                left = {call: name for call, name in calls.items() if call != record.call}
                self._update(attempt, calls=left)
            case told.TurnSteered():
                self._leave(session, self._message(record, record.message, ("waiting",)), "taken")
                self._update(turn, messages=(*turn["messages"], record.message))
            case told.TurnDone():
                self._update(attempt, state="done", calls={})
                self._update(turn, state="done", question=None)
                self._update(session, turn=None)

    def _attempt_lost(self, record: told.AttemptLost) -> None:
        turn, attempt = self._open_attempt(record, record.turn, record.attempt)
        _fence(turn["losses"] <= record.losses, record)
        spent = record.input_tokens, record.output_tokens, record.cost
        self._update(attempt, state="lost", calls={}, spent=spent)
        is_asking = turn["question"] is not None
        self._update(turn, state="asking" if is_asking else "queued", losses=record.losses)

    def _question_asked(self, record: told.QuestionAsked) -> None:
        turn = self._turn(record, record.turn, record.attempt, "queued" if record.resumes else "running")
        _fence(record.number == turn["questions"] + 1 and turn["question"] is None, record)
        if not record.resumes:
            _, attempt = self._open_attempt(record, record.turn, record.attempt)
            _fence(not record.call or record.call in attempt["calls"], record)
            self._update(attempt, spent=(record.input_tokens, record.output_tokens, record.cost))
            if not record.hold:
                self._update(attempt, state="asked", calls={})
        asked = record.question, record.kind, record.text, record.choices, record.call
        question = Question(*asked, record.resumes, record.hold, record.at)
        state = "running" if record.hold else "asking"
        asking: Row = {"state": state, "content_at": record.at, "question": question}
        self._update(turn, **asking, questions=record.number)

    def _question_answered(self, session: Row, record: told.QuestionAnswered) -> None:
        turn = self._turn(record, record.turn, record.attempt, "running" if record.is_held else "asking")
        _fence(turn["question"] is not None and turn["question"].id == record.question, record)
        if record.is_held:
            self._open_attempt(record, record.turn, record.attempt)
        state = "running" if record.is_held else "queued"
        self._update(turn, state=state, content_at=record.at, question=None)
        if record.message in session["waiting"]:
            self._leave(session, self._message(record, record.message, ("waiting",)), "taken")

    def _turn_ended(self, session: Row, record: _Ending) -> None:
        """An open attempt allows a failure, a stopped one only the end that it was stopped for."""
        attempt = self.attempts.get((record.turn, record.attempt))
        runs = attempt is not None and attempt["state"] in ("open", "stopped")
        is_asking = self.turns.get(record.turn, {}).get("question") is not None
        state = "running" if runs else "asking" if is_asking else "queued"
        turn = self._turn(record, record.turn, record.attempt, state)
        ended = TurnState.FAILED if isinstance(record, told.TurnFailed) else TurnState.INTERRUPTED
        if attempt is not None and runs:
            verdict = attempt["verdict"]
            _fence(verdict.state is ended if verdict else ended is TurnState.FAILED, record)
            self._update(attempt, state=ended.value, calls={})
        self._update(turn, state=ended.value, question=None)
        self._update(session, turn=None)


def _is_writable(record: Record) -> bool:
    """A lone surrogate cannot be encoded as UTF-8."""
    values = (getattr(record, field.name) for field in fields(record))
    texts = (str(value) for value in values if isinstance(value, str | Reason))
    try:
        return all(text.isascii() or text.encode() for text in texts)
    except UnicodeEncodeError:
        return False


def _fence(holds: bool, record: Record) -> None:
    if not holds:
        fault = (
            f"the journal does not have {record.session} in the state that {type(record).__name__} changes"
        )
        raise JournalFenced(fault, "restart the service: what was committed stands")
