"""Waits for running turns and names them; shared by `drain --wait` and `stop --drain`."""

import time

from hermesctl.client import Client
from hermesctl.render import one_line
from hermesctl.waiting import Waiting
from ipc.bounds import ROWS_MAX
from ipc.messages import Done, Drain, Show, Table
from ipc.places import Places

# Interval of checks for running turns.
_LOOK_SECONDS = 0.2
# Turns that are named; of more, the number is enough.
_NAMED_MAX = 5


def drain_and_wait(places: Places, budget_seconds: float | None) -> list[str]:
    """Starts no further turn and waits; returns the turns still running at the time limit.

    Without a time limit it waits for as long as it takes.
    """
    client = Client(places)
    waiting = Waiting()
    began = time.monotonic()
    try:
        client.ask(Drain(), Done)
        while running := running_turns(client):
            if budget_seconds is not None and time.monotonic() - began >= budget_seconds:
                return running
            waiting.say(f"waiting for {named(running)} to end")
            client.receive(_LOOK_SECONDS)
        return []
    finally:
        client.close()


def drain_seconds(places: Places) -> float:
    """Returns the drain time in hermes.toml."""
    client = Client(places)
    try:
        return float(client.ask(Show("status"), Table).rows[0]["drain_seconds"])
    finally:
        client.close()


def running_turns(client: Client) -> list[str]:
    return [one_line(row["turn"]) for row in client.rows(Show("turns", state="running", limit=ROWS_MAX))]


def named(turns: list[str]) -> str:
    """Lists the turns in a sentence."""
    more = len(turns) - _NAMED_MAX
    return ", ".join(turns[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
