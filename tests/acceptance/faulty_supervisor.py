"""`python -m tests.acceptance.faulty_supervisor`: the supervisor with a defect at every boundary.

Each defect is met by one name only, so that a test chooses which. All of them raise an exception whose words
are a secret, as an exception's words may be.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ipc import paging
from supervisor import enrichment, entry
from supervisor.clients import changes, queries, subscriptions
from supervisor.core.events import Finished
from supervisor.core.state import session_of
from supervisor.decider import Decider
from supervisor.event_queue import EventQueue
from supervisor.journal import maintenance as journal_care
from supervisor.services.service import Service
from supervisor.stt.transcription import Transcription
from supervisor.workers.assignment import AssignBuilder
from supervisor.workers.router import Router

SECRET = "the words of a person"
# Of the request under which a follow is begun that meets the defect.
BAD_FOLLOW = (666).to_bytes(8)


class Defect(Exception):
    """What nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(SECRET)


def plant(owner: Any, name: str, is_met: Callable[..., bool]) -> None:
    """The method as it is, but for the calls that meet the defect."""
    sound = getattr(owner, name)

    def faulty(*arguments: Any, **named: Any) -> Any:
        if is_met(*arguments, **named):
            raise Defect
        return sound(*arguments, **named)

    setattr(owner, name, faulty)


def _break_a_callback(*arguments: Any) -> bool:
    """A callback of the loop that belongs to no request."""
    if getattr(arguments[1], "session", "") == "bad callback":
        asyncio.get_running_loop().call_soon(_raise)
    return False


def _raise() -> None:
    raise Defect


def plant_a_number_beyond_the_journal(owner: Any) -> None:
    """The usage of one session's turns, as if the wire had no bounds."""
    sound = owner.post

    def faulty(self: EventQueue, event: Any, *rest: Any, **named: Any) -> None:
        if isinstance(event, Finished) and session_of(event.turn) == "bad number":
            event = replace(event, input_tokens=2**63)
        sound(self, event, *rest, **named)

    owner.post = faulty


def main() -> None:
    hearings = [0]

    def third_beat(service: Service, message: object) -> bool:
        hearings[0] += 1
        return hearings[0] == 3

    plant(queries.Views, "show", lambda self, request, *rest: request.session == "bad view")
    plant(queries.Views, "show", _break_a_callback)
    plant(changes.Changes, "_submit", lambda self, request, *rest, **named: request.session == "bad request")
    plant(paging, "done", lambda turns, note="": "bad answer" in note)
    plant(journal_care, "stats", lambda path: True)
    plant(enrichment.Lookup, "_wake", lambda self, name: name == "bad lookup")
    plant(AssignBuilder, "__call__", lambda self, effect: effect.session == "bad turn")
    plant(Router, "_spoke", lambda self, line, message, frame: message.session == "bad worker")
    plant(Service, "received", third_beat)
    plant(subscriptions.Subscriptions, "_send", lambda self, follower, frame: _is_bad(follower, frame))
    plant(Transcription, "transcribe", lambda self, effect: effect.session == "bad clip")
    plant(Decider, "_decide", lambda self, event, *rest: getattr(event, "session", "") == "bad rule")
    plant_a_number_beyond_the_journal(EventQueue)
    entry.main()


def _is_bad(follower: Any, frame: bytes) -> bool:
    return follower.request == BAD_FOLLOW and b"turn.done" in frame


if __name__ == "__main__":
    main()
