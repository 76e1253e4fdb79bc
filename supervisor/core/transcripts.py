"""Transcripts: a clip keeps its place while it is transcribed, and has its effect once the text is there."""

from supervisor.core import inbox, line
from supervisor.core.decision import Draft
from supervisor.core.effects import Transcribe
from supervisor.core.events import NotTranscribed, Transcribed
from supervisor.core.records import TranscriptFailed, TranscriptReady
from supervisor.core.state import Message, Session


def transcribed(draft: Draft, event: Transcribed) -> None:
    """Publish the transcript, then apply it like a text message. A second transcript is ignored."""
    found = _transcribing(draft, event.session, event.message)
    if found is None:
        return
    session, message = found
    message.text = event.text
    echo = draft.state.policy.echo
    draft.tell(session, TranscriptReady, message=message.id, text=event.text, echo=echo)
    inbox.understood(draft, session, message)
    inbox.go_on(draft, session, message.seq)


def not_transcribed(draft: Draft, event: NotTranscribed) -> None:
    """End the message: it interrupts nothing and enters no history, and what waits behind it continues."""
    found = _transcribing(draft, event.session, event.message)
    if found is None:
        return
    session, message = found
    line.take(draft.state, session, message)
    draft.tell(session, TranscriptFailed, message=message.id, reason=event.reason, hint=event.hint)
    if not session.waiting:
        inbox.release(draft, session)
    inbox.go_on(draft, session, message.seq)


def take_up(draft: Draft, session: Session) -> None:
    """Have clips transcribed that the last epoch did not finish."""
    for message in session.waiting:
        if message.is_transcribing:
            draft.perform(Transcribe(session.name, message.id, message.clip))


def _transcribing(draft: Draft, session_name: str, message_id: str) -> tuple[Session, Message] | None:
    session = draft.state.sessions.get(session_name)
    for message in session.waiting if session else ():
        if session and message.id == message_id and message.is_transcribing:
            return session, message
    return None
