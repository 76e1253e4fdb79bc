"""Spoken messages: a clip keeps its place while it is transcribed, and acts only once its words are there."""

from supervisor.core import inbox, line
from supervisor.core.decision import Ledger
from supervisor.core.effects import Transcribe
from supervisor.core.events import NotTranscribed, Transcribed
from supervisor.core.records import TranscriptFailed, TranscriptReady
from supervisor.core.state import Message, Session


def transcribed(ledger: Ledger, event: Transcribed) -> None:
    """The words are told first, then they do what typed words would do. A second transcript is an echo."""
    found = _transcribing(ledger, event.session, event.message)
    if found is None:
        return
    session, message = found
    message.text = event.text
    echo = ledger.state.policy.echo
    ledger.tell(session, TranscriptReady, message=message.id, text=event.text, echo=echo)
    inbox.understood(ledger, session, message)
    inbox.go_on(ledger, session, message.seq)


def not_transcribed(ledger: Ledger, event: NotTranscribed) -> None:
    """The message ends: nobody is interrupted, nothing enters the history, what waits behind it goes on."""
    found = _transcribing(ledger, event.session, event.message)
    if found is None:
        return
    session, message = found
    line.take(ledger.state, session, message)
    ledger.tell(session, TranscriptFailed, message=message.id, reason=event.reason, hint=event.hint)
    if not session.waiting:
        inbox.release(ledger, session)
    inbox.go_on(ledger, session, message.seq)


def take_up(ledger: Ledger, session: Session) -> None:
    """A new life has clips transcribed that the last one did not finish."""
    for message in session.waiting:
        if message.is_transcribing:
            ledger.perform(Transcribe(session.name, message.id, message.clip))


def _transcribing(ledger: Ledger, session_name: str, message_id: str) -> tuple[Session, Message] | None:
    session = ledger.state.sessions.get(session_name)
    for message in session.waiting if session else ():
        if session and message.id == message_id and message.is_transcribing:
            return session, message
    return None
