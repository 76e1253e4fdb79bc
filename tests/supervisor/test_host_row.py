"""The row of a host that is alone: as its neighbours' rows would be, counted from its own state."""

from supervisor.clients.host_row import alone
from supervisor.config.host_settings import Hosts
from supervisor.core.policy import Policy
from supervisor.core.state import Place, Session, State
from tests.supervisor.fixed_clock import NOW


def test_the_row_of_a_host_that_is_alone_counts_what_it_has() -> None:
    state = State(Policy(busy_seats=4), epoch=7)
    state.busy = {0: None, 1: None}
    state.sessions = {name: Session(name) for name in ("runs", "waits", "rests")}
    state.queued["waits"] = Place(0, NOW)
    row = alone(state, Hosts(name="alpha", labels=("gpu",)))
    assert {
        name: row[name] for name in ("name", "seats", "free", "sessions", "running", "labels", "life")
    } == {
        "name": "alpha",
        "seats": 4,
        "free": 1,
        "sessions": 3,
        "running": 2,
        "labels": ["gpu"],
        "life": 7,
    }


def test_a_host_with_more_turns_than_seats_has_none_free() -> None:
    state = State(Policy(busy_seats=1))
    for number in range(3):
        state.queued[f"s{number}"] = Place(number, NOW)
    assert alone(state, Hosts())["free"] == 0
