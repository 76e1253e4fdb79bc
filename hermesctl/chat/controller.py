"""The chat without its terminal: the actions of a person and their effects. No method blocks."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from hermesctl import clip_upload
from hermesctl.chat import earlier_events
from hermesctl.chat.connection import Answered, Connected, ConnectionEvent, Disconnected, Received
from hermesctl.chat.conversation import Conversation, Outgoing
from hermesctl.chat.tool_outputs import Outputs
from hermesctl.errors import CommandError
from hermesctl.event_format import unwritten
from hermesctl.render import cut, one_line
from hermesctl.text_input import clean
from ipc.messages import (
    Accepted,
    Answer,
    Done,
    Event,
    Interrupt,
    Noted,
    Queue,
    Refused,
    Request,
    Respond,
    Retry,
    Show,
    Submit,
    Table,
)
from ipc.places import Places

# Messages that wait for the supervisor: more than a person types in an outage.
OUTGOING_MAX = 100
# Interval at which the other sessions are checked for news.
_LOOK_SECONDS = 3.0
# Sessions that may show a mark or be completed: the most recent ones.
_SESSIONS_MAX = 50
# Rows of a table that the screen shows at most; a longer one is for `hermesctl`.
_ROWS_MAX = 1000
_ME = "hermesctl"


class Transport(Protocol):
    """The part of the connection that the controller uses."""

    def post(self, ticket: int, request: Request) -> None: ...

    def subscribe(self, session: str, after: int | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A few lines about the last request; the next line that is sent removes them."""

    lines: tuple[str, ...]
    tone: Literal["plain", "fault"] = "plain"


Work = Callable[[], object]
Then = Callable[[object | CommandError], None]


class Controller:
    """The state of the chat and the actions on it.

    `run_apart(work, then)` runs slow work outside the loop and calls `then` with its result or its error.
    `run_command(controller, line)` runs a line that begins with a slash; false when it was refused.
    """

    def __init__(
        self,
        places: Places,
        session: str,
        transport: Transport,
        run_apart: Callable[[Work, Then], None],
        run_command: Callable[["Controller", str], bool],
    ) -> None:
        self.places = places
        self._transport = transport
        self._run_apart = run_apart
        self._run_command = run_command
        self.current = Conversation(session)
        self.conversations = {session: self.current}
        self.notice: Notice | None = None
        self.is_away = False
        self.is_unfolded = False
        self.outputs = Outputs(self.ask)
        self.is_leaving = False
        self.sessions: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._looked_at = 0.0
        self._is_warned = False
        self._is_reading_earlier = False
        self._ticket = 0
        self._calls: dict[int, Callable[[Answer], None]] = {}

    # --- what happens

    def handle(self, event: ConnectionEvent) -> None:
        match event:
            case Received(item):
                self._receive(item)
            case Answered(ticket, answer):
                call = self._calls.pop(ticket, None)
                if call is not None:
                    call(answer)
            case Connected(session):
                self.is_away = False
                self._refresh(self.conversations[session])
            case Disconnected():
                self.is_away = True

    def poll(self, now: float) -> None:
        """Called on every tick; checks the other sessions at a longer interval."""
        if now - self._looked_at > _LOOK_SECONDS and not self.is_away:
            self._looked_at = now
            self.ask(Show("sessions", limit=_SESSIONS_MAX), self._learn_sessions)

    @property
    def unread(self) -> list[str]:
        """Other sessions with events since they were last shown."""
        return [
            name
            for name, seq in self.sessions.items()
            if name != self.current.session and seq > self._seen.get(name, seq)
        ]

    @property
    def unsent(self) -> list[str]:
        return [
            each.text
            for conversation in self.conversations.values()
            for each in conversation.outgoing
            if each.state == "sending"
        ]

    # --- what a person does

    def enter(self, typed: str) -> bool:
        """Handles a typed line; returns false when it was refused and should stay in the input."""
        self.notice, self._is_warned = None, False
        typed = clean(typed)
        if not typed.strip():
            return False
        if typed.startswith("/") and not typed.startswith("//"):
            return self._run_command(self, typed)
        text = typed.removeprefix("/") if typed.startswith("//") else typed
        if (question := self.current.log.question) is not None:
            return self.respond(question.id, question.meant_by(text))
        return self.send(text)

    def send(self, text: str, clip: str = "") -> bool:
        session, key = self.current.session, f"{_ME}-{os.urandom(12).hex()}"
        request = Submit(session, "" if clip else text, key, self.current.busy, clip=clip)
        return self._submit(request, Outgoing(text, clip=clip))

    def send_clip(self, path: str) -> None:
        """Copies a sound file into the clips folder, then sends it under its name there."""
        conversation = self.current

        def stored(name: object) -> None:
            if isinstance(name, CommandError):
                self.show_fault(name.fault, name.hint)
            elif conversation is not self.current:
                clip_upload.discard(self.places, str(name))
                self.show_fault(f"{path} was not sent", f"say /voice in {conversation.session} again")
            elif not self.send(f"🎙️ {os.path.basename(path)}", clip=str(name)):
                clip_upload.discard(self.places, str(name))

        self._run_apart(lambda: clip_upload.store(self.places, path), stored)

    def retry(self, what: str) -> bool:
        request = Retry(what, f"{_ME}-{os.urandom(12).hex()}")
        return self._submit(request, Outgoing(f"again: {what}"))

    def respond(self, question: str, text: str) -> bool:
        if self.is_away:
            self.show_fault("the supervisor is away", "answer when it is back")
            return False
        self.ask(Respond(question, text, _ME), lambda answer: None)
        return True

    def interrupt(self, *, drop: bool = False, again: bool = False) -> bool:
        """Interrupts the running turn; returns false when none runs, or the supervisor is away.

        `again` interrupts one that is being interrupted, too: its agent may have a grace.
        """
        conversation = self.current
        turn = conversation.log.open_turn
        if turn is None or self.is_away or (conversation.interrupting == turn.id and not drop and not again):
            return False
        conversation.interrupting = turn.id

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refused):
                conversation.interrupting = ""
            elif isinstance(answer, Done) and not answer.turns:
                conversation.interrupting = ""
                self.show(answer.note or "nothing runs any more")
            elif isinstance(answer, Done) and answer.unwritten:
                self.show(*unwritten(answer))

        self.ask(Interrupt(conversation.session, _ME, turn.id, drop), answered)
        return True

    def switch(self, session: str) -> None:
        if session == self.current.session:
            self.show(f"this is {session}")
            return
        self._seen[self.current.session] = self.current.log.seq
        known = session in self.conversations
        self.current = self.conversations.setdefault(session, Conversation(session))
        self._transport.subscribe(session, self.current.log.seq if known else None)

    def next_unread(self) -> None:
        """Switches to the next session with news, else to the one that was left last."""
        others = self.unread or [name for name in self.conversations if name != self.current.session]
        if others:
            self.switch(others[0])
        else:
            self.show("no other session has news; /session NAME opens one")

    def read_earlier(self) -> None:
        """Reads one page of earlier events; the visible lines stay where they are."""
        conversation = self.current
        first = conversation.log.first_seq
        if first <= 1 or self._is_reading_earlier:
            return
        if conversation.reaches_the_limit:
            self.show(f"a chat goes back so far; hermesctl tail {conversation.session} --after 0 has it all")
            return
        self._is_reading_earlier = True

        def read(events: object) -> None:
            self._is_reading_earlier = False
            if isinstance(events, CommandError):
                self.show_fault(events.fault, events.hint)
            else:
                assert isinstance(events, list)
                conversation.put_before(events)
                if not events:  # the journal has pruned the rest: this is the beginning now
                    conversation.log.first_seq = 1

        self._run_apart(lambda: earlier_events.page(self.places, conversation.session, first), read)

    def toggle_tools(self) -> None:
        """Unfolds the output of tools, or folds it again."""
        self.is_unfolded = not self.is_unfolded
        if not self.is_unfolded:
            for conversation in self.conversations.values():
                self.outputs.forget(conversation.log.turns.values())

    def leave(self) -> None:
        """Leaves the chat, after one warning if messages are unsent."""
        if self.unsent and not self._is_warned:
            self._is_warned = True
            self.show_fault(f"{len(self.unsent)} not accepted yet", "wait, or leave once more to go without")
        else:
            self.is_leaving = True

    # --- what commands use

    def ask(self, request: Request, then: Callable[[Answer], None]) -> None:
        """Posts a request; shows a refusal, except of a Show. Joins the pages of a table."""
        rows: list[dict[str, Any]] = []
        wanted = request.limit if isinstance(request, Show) and request.what != "story" else _ROWS_MAX

        def answered(answer: Answer) -> None:
            if isinstance(answer, Table) and isinstance(request, Show | Queue):
                rows.extend(answer.rows)
                if answer.more and len(rows) < wanted:
                    self._post(msgspec.structs.replace(request, after=answer.more), answered)
                    return
                answer = Table(tuple(rows), answer.more)
            if isinstance(answer, Refused) and not isinstance(request, Show):
                self.show_fault(answer.error, answer.hint)
            then(answer)

        self._post(request, answered)

    def show(self, *lines: str) -> None:
        self.notice = Notice(lines)

    def show_fault(self, fault: str, hint: str) -> None:
        self.notice = Notice((fault, f"hint: {hint}"), "fault")

    # --- inside

    def _post(self, request: Request, answered: Callable[[Answer], None]) -> None:
        self._ticket += 1
        self._calls[self._ticket] = answered
        self._transport.post(self._ticket, request)

    def _submit(self, request: Submit | Retry, outgoing: Outgoing) -> bool:
        conversation = self.current
        if len(conversation.outgoing) >= OUTGOING_MAX:
            self.show_fault(f"{OUTGOING_MAX} messages are on their way", "wait until some are accepted")
            return False
        conversation.outgoing.append(outgoing)

        def answered(answer: Answer) -> None:
            if isinstance(answer, Accepted):
                outgoing.state, outgoing.message = "accepted", answer.message
                conversation.forget_arrived()
            elif isinstance(answer, Refused):
                conversation.outgoing.remove(outgoing)
                if outgoing.clip:
                    clip_upload.discard(self.places, outgoing.clip)
                words = cut(one_line(outgoing.text), 40)
                self.show_fault(f"“{words}” was not taken: {answer.error}", answer.hint)

        self.ask(request, answered)
        return True

    def _receive(self, item: object) -> None:
        if isinstance(item, Noted):
            session = item.turn.rpartition("/")[0] or self.current.session
            self.conversations.get(session, self.current).take(item)
        elif (conversation := self.conversations.get(getattr(item, "session", ""))) is not None:
            conversation.take(item)  # type: ignore[arg-type]
            if isinstance(item, Event) and item.fields.get("turn") == conversation.interrupting:
                turn = conversation.log.turns.get(conversation.interrupting)
                if turn is None or not turn.is_open:
                    conversation.interrupting = ""

    def _refresh(self, conversation: Conversation) -> None:
        """Reads the state that events may not have reported; on every new connection."""
        conversation.interrupting = ""
        self.outputs.ask_again(conversation.log.turns.values())

        def learn_queue(answer: Answer) -> None:
            if isinstance(answer, Table):
                conversation.log.take_queue(answer.rows)
                conversation.forget_arrived()

        def learn_mode(answer: Answer) -> None:
            if isinstance(answer, Table) and answer.rows:
                conversation.set_busy = str(answer.rows[0].get("busy_mode") or "")

        self.ask(Queue(conversation.session), learn_queue)
        self.ask(Show("status", session=conversation.session), learn_mode)

    def _learn_sessions(self, answer: Answer) -> None:
        if isinstance(answer, Table):
            self.sessions = {str(row["session"]): int(row.get("seq") or 0) for row in answer.rows}
            for name, seq in self.sessions.items():
                self._seen.setdefault(name, seq)
            self._seen[self.current.session] = self.current.log.seq
