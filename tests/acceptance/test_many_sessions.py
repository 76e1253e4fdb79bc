"""Two hundred sessions at once on a handful of seats: all answered, each in its order, memory flat."""

from collections.abc import Callable

import pytest

from hermesctl.client import Client
from ipc.messages import Accepted, Submit
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

SESSIONS = 200
# So many of them have a message before: these turns only fill what stays filled.
WARM_SESSIONS = 50
# To each session: two, so that there is an order.
HOT = 2
DEADLINE_OF_ALL_SECONDS = 240


# Nearly every turn is a process of its own: on a busy machine that takes a while.
@pytest.mark.timeout(2 * DEADLINE_OF_ALL_SECONDS)
def test_two_hundred_sessions_are_all_answered_in_order(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 4", turns='busy = "queue"')
    _say_to_all(service, "warm", WARM_SESSIONS, 1)
    _wait(service, WARM_SESSIONS)
    before = _memory(service)
    _say_to_all(service, "hot", SESSIONS, HOT)
    assert service.show("turns", state="queued", limit=1000), "queueing must be visible"
    _wait(service, WARM_SESSIONS + SESSIONS * HOT)
    for number in range(0, SESSIONS, 20):
        _check_order(service, number)
    grown = _memory(service) - before
    assert grown < 16 * 1024 * 1024, f"the supervisor grew by {grown} bytes"


def _say_to_all(service: Service, word: str, sessions: int, count: int) -> None:
    """One client, nothing awaited in between: all messages arrive at once."""
    client = Client(service.places)
    sent = [
        client.post(Submit(f"s{number}", f"{word} {index}", key=f"{word}-{index}"))
        for index in range(count)
        for number in range(sessions)
    ]
    for number in sent:
        client.answer_to(number, Accepted, 60)
    client.close()


def _wait(service: Service, ended: int) -> None:
    until(lambda: service.status()["turns_ended"] >= ended, deadline_seconds=DEADLINE_OF_ALL_SECONDS)


def _memory(service: Service) -> int:
    assert service.process is not None
    with open(f"/proc/{service.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def _check_order(service: Service, number: int) -> None:
    words = ["warm 0"] * (number < WARM_SESSIONS) + [f"hot {index}" for index in range(HOT)]
    listener = service.listen(f"s{number}")
    listener.until(lambda: len(listener.of_type("turn.done")) == len(words))
    answers = [event.fields["text"] for event in listener.of_type("turn.done")]
    assert answers == [f"You said: {word}" for word in words]
    assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))
