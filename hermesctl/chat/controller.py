"""The chat without its terminal: what a person can do here, and what becomes of it. It waits for nothing."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from hermesctl import clip_upload
from hermesctl.chat import earlier_events, slash_commands
from hermesctl.chat.connection import Answered, Away, Connected, Happening, Told
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

# Messages on their way while the supervisor is away: more than a person types in an outage.
OUTGOING_MAX = 100
# How often other sessions are looked at for news.
_LOOK_SECONDS = 3.0
# Sessions that may show a mark or be completed: the most recent ones.
_SESSIONS_MAX = 50
# Rows of a table that a screen is asked to show; a longer one is for `hermesctl`.
_ROWS_MAX = 1000
_ME = "hermesctl"


class Road(Protocol):
    """The part of the line that is used here."""

    def post(self, ticket: int, request: Request) -> None: ...

    def follow(self, session: str, after: int | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A few lines about what was just asked for; gone with the next line that is sent."""

    lines: tuple[str, ...]
    tone: Literal["plain", "fault"] = "plain"


Work = Callable[[], object]
Then = Callable[[object | CommandError], None]


class Desk:
    """`apart(work, then)` runs what may take a while elsewhere and gives back its result, or its error."""

    def __init__(self, places: Places, session: str, road: Road, apart: Callable[[Work, Then], None]) -> None:
        self.places = places
        self._road = road
        self._apart = apart
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

    def take(self, happening: Happening) -> None:
        match happening:
            case Told(item):
                self._hear(item)
            case Answered(ticket, answer):
                call = self._calls.pop(ticket, None)
                if call is not None:
                    call(answer)
            case Connected(session):
                self.is_away = False
                self._arrive(self.conversations[session])
            case Away():
                self.is_away = True

    def look(self, now: float) -> None:
        """Called every moment; now and then it asks what other sessions do."""
        if now - self._looked_at > _LOOK_SECONDS and not self.is_away:
            self._looked_at = now
            self.ask(Show("sessions", limit=_SESSIONS_MAX), self._learn_sessions)

    @property
    def unread(self) -> list[str]:
        """Other sessions in which something has happened since they were last looked at."""
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
        """A line that was typed; False when it was not taken and should stay where it is."""
        self.notice, self._is_warned = None, False
        typed = clean(typed)
        if not typed.strip():
            return False
        if typed.startswith("/") and not typed.startswith("//"):
            return slash_commands.run(self, typed)
        text = typed.removeprefix("/") if typed.startswith("//") else typed
        if (question := self.current.transcript.question) is not None:
            return self.respond(question.id, question.meant_by(text))
        return self.send(text)

    def send(self, text: str, clip: str = "") -> bool:
        session, key = self.current.session, f"{_ME}-{os.urandom(12).hex()}"
        request = Submit(session, "" if clip else text, key, self.current.busy, clip=clip)
        return self._submit(request, Outgoing(text, clip=clip))

    def speak(self, path: str) -> None:
        """A sound file: copied into the clips folder first, then sent under its name there."""
        conversation = self.current

        def stored(name: object) -> None:
            if isinstance(name, CommandError):
                self.complain(name.fault, name.hint)
            elif conversation is not self.current:
                clip_upload.discard(self.places, str(name))
                self.complain(f"{path} was not sent", f"say /voice in {conversation.session} again")
            elif not self.send(f"🎙️ {os.path.basename(path)}", clip=str(name)):
                clip_upload.discard(self.places, str(name))

        self._apart(lambda: clip_upload.store(self.places, path), stored)

    def retry(self, what: str) -> bool:
        request = Retry(what, f"{_ME}-{os.urandom(12).hex()}")
        return self._submit(request, Outgoing(f"again: {what}"))

    def respond(self, question: str, text: str) -> bool:
        if self.is_away:
            self.complain("the supervisor is away", "answer when it is back")
            return False
        self.ask(Respond(question, text, _ME), lambda answer: None)
        return True

    def interrupt(self, *, drop: bool = False) -> bool:
        """Asks for the end of what runs; False when there is nothing more to ask for, or nobody to ask."""
        conversation = self.current
        turn = conversation.transcript.open_turn
        if turn is None or self.is_away or (conversation.interrupting == turn.id and not drop):
            return False
        conversation.interrupting = turn.id

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refused):
                conversation.interrupting = ""
            elif isinstance(answer, Done) and not answer.turns:
                conversation.interrupting = ""
                self.say(answer.note or "nothing runs any more")
            elif isinstance(answer, Done) and answer.unwritten:
                self.say(*unwritten(answer))

        self.ask(Interrupt(conversation.session, _ME, turn.id, drop), answered)
        return True

    def switch(self, session: str) -> None:
        if session == self.current.session:
            self.say(f"this is {session}")
            return
        self._seen[self.current.session] = self.current.transcript.seq
        known = session in self.conversations
        self.current = self.conversations.setdefault(session, Conversation(session))
        self._road.follow(session, self.current.transcript.seq if known else None)

    def next_unread(self) -> None:
        """The next session with news, else the one that was left last."""
        others = self.unread or [name for name in self.conversations if name != self.current.session]
        if others:
            self.switch(others[0])
        else:
            self.say("no other session has news; /session NAME opens one")

    def read_earlier(self) -> None:
        """One page of what happened before; what is shown stays where it is."""
        conversation = self.current
        first = conversation.transcript.first_seq
        if first <= 1 or self._is_reading_earlier:
            return
        if conversation.reaches_the_limit:
            self.say(f"a chat goes back so far; hermesctl tail {conversation.session} --after 0 has it all")
            return
        self._is_reading_earlier = True

        def read(events: object) -> None:
            self._is_reading_earlier = False
            if isinstance(events, CommandError):
                self.complain(events.fault, events.hint)
            else:
                assert isinstance(events, list)
                conversation.put_before(events)
                if not events:  # the journal has forgotten the rest: this is the beginning now
                    conversation.transcript.first_seq = 1

        self._apart(lambda: earlier_events.page(self.places, conversation.session, first), read)

    def fold(self) -> None:
        """Unfolds what tools did, or folds it again."""
        self.is_unfolded = not self.is_unfolded
        if not self.is_unfolded:
            for conversation in self.conversations.values():
                self.outputs.forget(conversation.transcript.turns.values())

    def leave(self) -> None:
        """Goes, but says once that something would stay unsent."""
        if self.unsent and not self._is_warned:
            self._is_warned = True
            self.complain(f"{len(self.unsent)} not accepted yet", "wait, or leave once more to go without")
        else:
            self.is_leaving = True

    # --- what commands use

    def ask(self, request: Request, then: Callable[[Answer], None]) -> None:
        """Posts a request; a refusal is shown unless it is only a look. Pages of a table come as one."""
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
                self.complain(answer.error, answer.hint)
            then(answer)

        self._post(request, answered)

    def say(self, *lines: str) -> None:
        self.notice = Notice(lines)

    def complain(self, fault: str, hint: str) -> None:
        self.notice = Notice((fault, f"hint: {hint}"), "fault")

    # --- inside

    def _post(self, request: Request, answered: Callable[[Answer], None]) -> None:
        self._ticket += 1
        self._calls[self._ticket] = answered
        self._road.post(self._ticket, request)

    def _submit(self, request: Submit | Retry, outgoing: Outgoing) -> bool:
        conversation = self.current
        if len(conversation.outgoing) >= OUTGOING_MAX:
            self.complain(f"{OUTGOING_MAX} messages are on their way", "wait until some are accepted")
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
                self.complain(f"“{words}” was not taken: {answer.error}", answer.hint)

        self.ask(request, answered)
        return True

    def _hear(self, item: object) -> None:
        if isinstance(item, Noted):
            session = item.turn.rpartition("/")[0] or self.current.session
            self.conversations.get(session, self.current).take(item)
        elif (conversation := self.conversations.get(getattr(item, "session", ""))) is not None:
            conversation.take(item)  # type: ignore[arg-type]
            if isinstance(item, Event) and item.fields.get("turn") == conversation.interrupting:
                turn = conversation.transcript.turns.get(conversation.interrupting)
                if turn is None or not turn.is_open:
                    conversation.interrupting = ""

    def _arrive(self, conversation: Conversation) -> None:
        """On every new connection: what an event may not have told."""
        conversation.interrupting = ""
        self.outputs.ask_again(conversation.transcript.turns.values())

        def learn_queue(answer: Answer) -> None:
            if isinstance(answer, Table):
                conversation.transcript.take_queue(answer.rows)
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
            self._seen[self.current.session] = self.current.transcript.seq
