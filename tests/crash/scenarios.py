"""What puppets and people do between them: short sessions that together pass every point there is."""

from ipc.messages import Accepted, Begin, Event, Exchange, Interrupt, Queue, Respond, Retry, Seen, Submit
from tests.crash.audience import Condition, Play
from tests.service import ENDINGS

# What people speak, by the name of the clip; puppet_ears.py does what stands in it.
CLIPS = {"words": "hear say finish", "mumble": "mumble", "drone": "drone"}


def has(kind: str, count: int = 1) -> Condition:
    return lambda events: sum(event.type == kind for event in events) >= count


def ended(turns: int) -> Condition:
    return lambda events: sum(event.type in ENDINGS for event in events) >= turns


def answered(messages: int) -> Condition:
    """So many messages are part of turns that have ended."""

    def holds(events: list[Event]) -> bool:
        over = {event.fields["turn"] for event in events if event.type in ENDINGS}
        taking = [event.fields for event in events if event.type in ("turn.opened", "turn.joined")]
        return sum(len(each["messages"]) for each in taking if each["turn"] in over) >= messages

    return holds


def message_of(answer: object) -> str:
    return answer.message if isinstance(answer, Accepted) else ""


def plain(session: str) -> Play:
    yield Submit(session, "say finish", "first")
    yield Submit(session, "say finish", "second", busy="queue")
    yield ended(2)


def begun(session: str) -> Play:
    """A session with an imported history, and one that continues from its first turn."""
    yield Begin(session, "begin", (Exchange("before", "an answer"),))
    yield Submit(session, "say finish", "first")
    yield ended(1)
    yield Begin(f"{session}-fork", "begin", from_session=session, through_turn=1)


def tools(session: str) -> Play:
    yield Submit(session, "say tool say open say tool say finish", "first")
    yield ended(1)


def cut(session: str) -> Play:
    """Interrupted while it works, twice; one waiting message is dropped, the others are held and let go."""
    yield Submit(session, "say open wait", "first")
    yield has("tool.started")
    dropped = yield Submit(session, "finish", "second", busy="queue")
    yield Submit(session, "say finish", "third", busy="queue")
    yield Interrupt(session, "audience")
    yield Interrupt(session, "audience")
    yield ended(1)
    yield Queue(session, "drop", message_of(dropped))
    yield Queue(session, "resume")
    yield ended(2)


def overtaken(session: str) -> Play:
    yield Submit(session, "say wait", "first")
    yield has("attempt.opened")
    yield Submit(session, "say finish", "second", busy="interrupt")
    yield ended(2)


def joined(session: str) -> Play:
    """The worker is not ready again before a turn in another session rings: the second turn is in line."""
    yield Submit(session, "say finish linger", "first")
    yield ended(1)
    yield Submit(session, "say finish", "second", busy="queue")
    yield Submit(session, "say finish", "third", busy="interrupt")
    yield Submit(f"{session}-bell", "finish ring", "bell")
    yield answered(3)


def steered(session: str) -> Play:
    yield Submit(session, "say steer finish", "first")
    yield has("attempt.opened")
    yield Submit(session, "say finish", "second", busy="steer")
    yield has("turn.done")


def collected(session: str) -> Play:
    yield Submit(session, "say wait", "first")
    yield has("attempt.opened")
    yield Submit(session, "finish", "second", busy="collect")
    yield Submit(session, "finish", "third", busy="collect")
    yield Interrupt(session, "audience")
    yield Queue(session, "resume")
    yield ended(2)


def lost(session: str) -> Play:
    yield Submit(session, "say open die finish", "first")
    yield ended(1)


def poisoned(session: str) -> Play:
    yield Submit(session, "say perish", "first")
    yield ended(1)


def failed(session: str) -> Play:
    yield Submit(session, "say open fail", "first")
    yield ended(1)


def refused(session: str) -> Play:
    yield Queue(session, "drop", "m_nobody")
    yield Submit(session, "finish", "first")
    yield ended(1)


def held(session: str) -> Play:
    """The attempt holds for the answer, or a later one gets it."""
    yield Submit(session, "say hold finish", "first")
    yield has("question.asked")
    yield Respond(f"{session}/1#1", "y", "audience")
    yield has("turn.done")


def asked(session: str) -> Play:
    """Answered by a command, then by a plain message, then not at all."""
    yield Submit(session, "say ask finish", "first")
    yield has("question.asked")
    yield Respond(f"{session}/1#1", "a", "audience")
    yield ended(1)
    yield Submit(session, "ask finish", "second", busy="queue")
    yield has("question.asked", 2)
    yield Submit(session, "b", "third", busy="queue")
    yield ended(2)
    yield Submit(session, "say ask finish", "fourth", busy="queue")
    yield has("question.asked", 3)
    yield Interrupt(session, "audience")
    yield ended(3)


def read(session: str) -> Play:
    """Acknowledged as it goes; the second time the cursor stands already."""
    yield Submit(session, "say finish", "first")
    yield ended(1)
    yield Seen("audience", session, 2)
    yield Seen("audience", session, 4)


def spoken(session: str) -> Play:
    """A clip, and a text that may not overtake it."""
    yield Submit(session, "", "first", clip="words")
    yield Submit(session, "say finish", "second", busy="queue")
    yield ended(2)


def spoken_over(session: str) -> Play:
    """Spoken while it works: the words interrupt, and others are waiting behind them."""
    yield Submit(session, "say wait", "first")
    yield has("attempt.opened")
    yield Submit(session, "", "second", busy="interrupt", clip="words")
    yield Submit(session, "", "third", busy="queue", clip="words")
    yield ended(3)


def unheard(session: str) -> Play:
    """Nothing is understood, also when it is tried again; whoever works is left alone."""
    yield Submit(session, "say wait", "first")
    yield has("attempt.opened")
    mumbled = yield Submit(session, "", "second", clip="mumble")
    yield has("transcript.failed")
    yield Retry(message_of(mumbled), "third")
    yield has("transcript.failed", 2)
    yield Interrupt(session, "audience")
    yield ended(1)


def unwanted(session: str) -> Play:
    """A clip that is dropped while it is being heard."""
    yield Submit(session, "say wait", "first")
    yield has("attempt.opened")
    dropped = yield Submit(session, "", "second", busy="queue", clip="drone")
    yield Queue(session, "drop", message_of(dropped))
    yield Submit(session, "say finish", "third", busy="interrupt")
    yield ended(2)


_TYPED = (
    plain,
    begun,
    tools,
    cut,
    overtaken,
    joined,
    steered,
    collected,
    lost,
    poisoned,
    failed,
    refused,
    asked,
    held,
    read,
)
_SPOKEN = (spoken, spoken_over, unheard, unwanted)
PLAYS = (*_TYPED, *_SPOKEN)


def all_plays(prefix: str = "") -> dict[str, Play]:
    """Every play, each in a session of its own."""
    return {f"{prefix}{play.__name__}": play(f"{prefix}{play.__name__}") for play in PLAYS}


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]
