"""Faults that a request alone shows, before the core is asked: names, keys, texts.

The decoder has checked types and bounds (ipc/bounds.py). This module checks what a bound cannot express, and
provides the sentences that people read.
"""

from collections.abc import Collection

from ipc import messages as wire
from ipc.bounds import INSTRUCTIONS_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_CHARACTERS_MAX
from ipc.isolation import tried_agent
from ipc.try_sessions import agent_of


def change(request: wire.Request, agents: Collection[str]) -> wire.Refused | None:
    """Return the fault of a request that would change something; `agents` are those of the settings."""
    match request:
        case wire.Submit():
            fault = name(request.session) or _content(request) or _key(request.key)
            return fault or _wishes(request, agents)
        case wire.Begin():
            return name(request.session) or _key(request.key) or _history(request)
        case wire.Interrupt(session=str(session)) | wire.Queue(session=session):
            return name(session)
        case wire.Respond():
            return text(request.text)
        case wire.Retry() | wire.Transcribe():
            return _key(request.key)
        case wire.Seen():
            return name(request.session) or cursor(request.cursor)
    return None


def subscribe(request: wire.Subscribe) -> wire.Refused | None:
    if request.session is None:
        if request.cursor:
            return wire.Refused("a cursor counts within one session", "name the session", code="invalid")
        if request.after is not None:
            return wire.Refused("events are counted within one session", "name the session", code="invalid")
        return None
    return cursor(request.cursor) if request.cursor else None


def not_told_yet(session: str, after: int, told: int) -> wire.Refused | None:
    """Refuse a place behind the last event: a client that waits there would miss the events before it."""
    if after <= told:
        return None
    error = f"session {session} has {told} events, so there is nothing after number {after} yet"
    hint = "subscribe after the seq of the last event that was read"
    return wire.Refused(error, hint, code="conflict")


def name(session: str) -> wire.Refused | None:
    if _is_name(session):
        return None
    error = f"a session's name has 1 to {NAME_CHARACTERS_MAX} printable characters and no space at its ends"
    return wire.Refused(error, "choose another name, for example demo or telegram:42", code="invalid")


def cursor(cursor: str) -> wire.Refused | None:
    if _is_name(cursor):
        return None
    error = f"a cursor's name has 1 to {NAME_CHARACTERS_MAX} printable characters and no space at its ends"
    return wire.Refused(error, "name it after the client, for example telegram-bridge", code="invalid")


def text(text: str) -> wire.Refused | None:
    """A message is typed by a person; larger content belongs in files."""
    size = len(text.encode())
    if size > MESSAGE_BYTES_MAX:
        error = f"the message is {size} bytes, the limit is {MESSAGE_BYTES_MAX}"
        hint = "put the large part in a file and name the file in the message"
        return wire.Refused(error, hint, code="invalid")
    if not text.strip():
        hint = "write something, or stop a turn with `hermesctl interrupt`"
        return wire.Refused("the message is empty", hint, code="invalid")
    return None


def _is_name(word: str) -> bool:
    return 0 < len(word) <= NAME_CHARACTERS_MAX and word.isprintable() and word.strip() == word


def _content(request: wire.Submit) -> wire.Refused | None:
    if request.clip and request.text:
        return wire.Refused("a message is a text or a clip, not both", "send two messages", code="invalid")
    return None if request.clip else text(request.text)


def _wishes(request: wire.Submit, agents: Collection[str]) -> wire.Refused | None:
    """Refuse an agent that is not there, and instructions that would crowd out the conversation."""
    if request.agent and request.agent not in agents:
        hint = f"use one of {', '.join(agents)}, or add a table [agents.NAME] to hermes.toml"
        return wire.Refused(f"there is no agent {request.agent}", hint, code="invalid")
    if request.agent and (tried_agent(request.session) or agent_of(request.session)):
        hint = "leave the agent out: the name of such a session says it"
        return wire.Refused(f"session {request.session} is a trial of one agent", hint, code="invalid")
    size = len(request.instructions.encode())
    if size > INSTRUCTIONS_BYTES_MAX:
        error = f"the instructions are {size} bytes, the limit is {INSTRUCTIONS_BYTES_MAX}"
        return wire.Refused(error, "put the large part in a file and name the file in them", code="invalid")
    return None


def _history(request: wire.Begin) -> wire.Refused | None:
    if bool(request.turns) == bool(request.from_session):
        error = "a session begins with turns, or with those of another session"
        return wire.Refused(error, "give either turns or from_session", code="invalid")
    if request.from_session == request.session:
        return wire.Refused(
            "a session cannot begin with itself", "give the new one another name", code="invalid"
        )
    return name(request.from_session) if request.from_session else None


def _key(key: str) -> wire.Refused | None:
    if 0 < len(key) <= NAME_CHARACTERS_MAX:
        return None
    hint = f"use 1 to {NAME_CHARACTERS_MAX} characters"
    return wire.Refused("the message's key is empty or too long", hint, code="invalid")
