"""Messages of a session: accepted, held, dropped, and their effect on a running turn.

States of a message, by the records that change them; `-` is a message that does not exist yet. A clip begins
as `transcribing`, a text as `waiting`. Taken, dropped and failed messages never change again.

| message | record | next state | cause |
| --- | --- | --- | --- |
| - | MessageAccepted | transcribing, waiting | a client sends a clip, or a text |
| transcribing | TranscriptReady | waiting | the STT service has its transcript |
| transcribing | TranscriptFailed | failed | it has none, or the service failed |
| transcribing, waiting | MessageDropped | dropped | a client drops it, or it is too old at a start |
| waiting | TurnOpened, TurnJoined | taken | a turn answers it, alone or with others |
| waiting | TurnSteered | taken | the running attempt has taken it in |
| waiting | QuestionAnswered | taken | it is the answer to an open question |

Invariants: turns take messages in the order of their seq. A message in steer mode, or one that answers a
question, may be taken before older ones that wait for a turn. A clip that is being transcribed keeps its
place: messages behind it can interrupt, and nothing else. While a session is held no turn opens; the next
message, or a resume, releases it.

`tests/core/test_transition_tables.py` compares the table with the stories.
"""

from supervisor.core import admission, line, outages, questions, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import Accepted, Done, ForgetClip, Refused, Transcribe
from supervisor.core.events import DropAsked, InterruptAsked, Known, ResumeAsked, TextArrived, VoiceArrived
from supervisor.core.records import MessageAccepted, MessageDropped, SessionHeld, SessionReleased
from supervisor.core.state import BusyMode, Message, Session, State


def arrived(draft: Draft, event: TextArrived | VoiceArrived) -> None:
    """Accept a message exactly once; refuse it with a reason when it cannot be kept or comes too late."""
    session = draft.state.sessions.setdefault(event.session, Session(event.session))
    if event.known is not None:
        draft.answer = _again(event, event.known)
        return
    draft.answer = too_late(session, event.expect_turn) or admission.refusal(draft.state, session)
    if draft.answer is None:
        _take(draft, session, event)


def _again(event: TextArrived | VoiceArrived, known: Known) -> Accepted | Refused:
    """The same key twice is one message. Clips are not compared: each is a new file."""
    is_same = known.text is None if isinstance(event, VoiceArrived) else known.text == event.text
    if is_same:
        return Accepted(event.message, known.seq, again=True)
    hint = f"choose another key; `hermesctl why {event.message}` tells what became of that message"
    error = f"the key {event.key} belongs to another message, {event.message}"
    return Refused(error, hint, code="conflict")


def _take(draft: Draft, session: Session, event: TextArrived | VoiceArrived) -> None:
    text = event.text if isinstance(event, TextArrived) else ""
    clip = event.clip if isinstance(event, VoiceArrived) else ""
    wishes = {"by": event.by, "agent": event.agent, "instructions": event.instructions}
    message = Message(event.message, text, event.busy, draft.now, clip, session.seq + 1, **wishes)
    draft.tell(
        session,
        MessageAccepted,
        message=message.id,
        key=event.key,
        kind="voice" if clip else "text",
        text=text,
        busy=message.busy.value,
        clip=clip,
        **wishes,
    )
    unreachable = outages.note(draft.state, session.name, draft.now)
    note = admission.note(draft.state) or unreachable or _wait_ahead(session, message)
    draft.answer = Accepted(message.id, session.seq, again=False, note=note)
    line.put(draft.state, session, message)
    if message.is_transcribing:
        draft.perform(Transcribe(session.name, message.id, clip))
    elif isinstance(event, TextArrived) and event.retries:
        release(draft, session)
        _follow(draft, session, message)
    else:
        understood(draft, session, message)


def _wait_ahead(session: Session, message: Message) -> str:
    """Return what a message that is about to wait in its session waits for."""
    turn = session.turn
    if turn is None or turn.question is not None or message.is_transcribing:
        return ""
    if message.busy is BusyMode.COLLECT and turn.has_begun:
        return f"it is answered with all that gathers until {turn.id} ends"
    if message.busy is not BusyMode.QUEUE:
        return ""
    count = len(session.waiting)
    before = f", behind {count} other message{'s' if count > 1 else ''}" if count else ""
    return f"it waits until {turn.id} ends{before}"


def understood(draft: Draft, session: Session, message: Message) -> None:
    """Apply a waiting message with text: it answers a question, interrupts, steers or waits.

    Behind a clip without a transcript it may interrupt, which needs no order; all else is done in order.
    """
    if message.seq > session.held:  # an earlier one belongs to the held messages
        release(draft, session)
    if is_next(session, message):
        if not questions.take_answer(draft, session, message):
            _follow(draft, session, message)
    elif session.turn and session.turn.question is None:
        _interrupt(draft, session, message)


def is_next(session: Session, message: Message) -> bool:
    """Return whether every message before it has text, or is gone."""
    return any(each is message for each in turns.with_words(session.waiting))


def go_on(draft: Draft, session: Session, after_seq: int) -> None:
    """Messages behind a clip whose transcript is ready or failed may answer a question or steer."""
    for message in list(turns.with_words(session.waiting)):
        if message.seq > after_seq and not questions.take_answer(draft, session, message) and session.turn:
            turns.steer(draft, session.turn, message)
    draft.state.openable[session.name] = None


def _follow(draft: Draft, session: Session, message: Message) -> None:
    """Apply the busy mode of a message to the turn before it."""
    _interrupt(draft, session, message)
    if session.turn is None:
        draft.state.openable[session.name] = None
    else:
        turns.steer(draft, session.turn, message)


def _interrupt(draft: Draft, session: Session, message: Message) -> None:
    """Interrupt a turn that has begun; one that has not will answer both messages."""
    if message.busy is BusyMode.INTERRUPT and session.turn and session.turn.has_begun:
        turns.interrupt(draft, session, by=message.id)


def too_late(session: Session, expect_turn: str | None) -> Refused | None:
    """A request made for a certain turn must not touch another one."""
    running = session.turn.id if session.turn else None
    if expect_turn is None or expect_turn == running:
        return None
    now = f"{running} runs now" if running else "nothing runs now"
    hint = "look again with `hermesctl sessions`, then repeat without it"
    return Refused(f"turn {expect_turn} is over, {now}", hint, code="conflict")


def interrupt_asked(draft: Draft, event: InterruptAsked) -> None:
    """Stop the running turn; waiting messages are held until the next one, so that none starts by itself."""
    session = draft.state.sessions.get(event.session)
    if session is None:
        draft.answer = Done(note=f"nothing runs in session {event.session}")
        return
    draft.answer = too_late(session, event.expect_turn)
    if draft.answer is not None:
        return
    if event.drop:
        _drop(draft, session, None, event.by)
    if session.waiting and not session.held:
        draft.tell(session, SessionHeld, waiting=len(session.waiting))
        session.held = session.seq
    stopped = turns.interrupt(draft, session, event.by)
    if stopped:
        draft.answer = Done(turns=(stopped,))
    elif session.turn:
        turns.end_grace(draft, session.turn)
        draft.answer = Done(turns=(session.turn.id,), note="it is being interrupted already")
    else:
        draft.answer = Done(note=f"nothing runs in session {event.session}")


def drop_asked(draft: Draft, event: DropAsked) -> None:
    session = draft.state.sessions.get(event.session)
    dropped = _drop(draft, session, event.message, event.by) if session else 0
    if dropped == 0 and event.message is not None:
        error = f"message {event.message} does not wait in session {event.session}"
        hint = f"list what waits with `hermesctl queue {event.session}`"
        draft.answer = Refused(error, hint, code="unknown")
    else:
        draft.answer = Done(note=f"{dropped} dropped")


def _drop(draft: Draft, session: Session, message_id: str | None, by: str) -> int:
    """Drop one waiting message, or all. Each gets its event."""
    chosen = [message for message in session.waiting if message_id in (None, message.id)]
    for message in chosen:
        line.take(draft.state, session, message)
        draft.tell(session, MessageDropped, message=message.id, by=by)
        if message.is_transcribing:
            draft.perform(ForgetClip(message.id))
    if not session.waiting:
        release(draft, session)
    clips = [message.seq for message in chosen if message.is_transcribing]
    if clips:
        go_on(draft, session, min(clips))
    return len(chosen)


def resume_asked(draft: Draft, event: ResumeAsked) -> None:
    session = draft.state.sessions.get(event.session)
    if session is None or not session.held:
        draft.answer = Done(note=f"nothing is held in session {event.session}")
        return
    draft.answer = Done(note=f"{len(session.waiting)} go on")
    release(draft, session)


def release(draft: Draft, session: Session) -> None:
    """Release the held messages."""
    if session.held:
        session.held = 0
        draft.tell(session, SessionReleased)
        draft.state.openable[session.name] = None


def put_to_rest(state: State, names: set[str]) -> None:
    """Remove sessions without open work from memory, after the commit: the journal has them."""
    for name in names:
        session = state.sessions.get(name)
        if session is not None and session.is_at_rest:
            del state.sessions[name]
