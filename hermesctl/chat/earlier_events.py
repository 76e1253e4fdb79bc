"""Reads events before those that are shown, one page at a time, on a connection of its own."""

import time

from hermesctl.client import ANSWER_SECONDS, Client
from hermesctl.errors import NotRunning
from ipc.messages import Event, Subscribe
from ipc.places import Places

PAGE_EVENTS = 400


def page(places: Places, session: str, before: int) -> list[Event]:
    """Returns the events just before seq `before`, in order; fewer where the journal has pruned some."""
    after = max(0, before - 1 - PAGE_EVENTS)
    found: list[Event] = []
    client = Client(places)
    try:
        number = client.post(Subscribe(session, after))
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            arrived = client.receive(0.5)
            if arrived is None or arrived[0] != number or not isinstance(arrived[1], Event):
                continue
            if arrived[1].seq < before:
                found.append(arrived[1])
            # Events have no gaps, so the first event that is shown already ends the page.
            if arrived[1].seq >= before - 1:
                return found
    finally:
        client.close()
    raise NotRunning(f"the supervisor did not answer within {ANSWER_SECONDS:g} s", "try again")
