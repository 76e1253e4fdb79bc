"""What a request alone shows: where its bounds lie, and the names in all of its fields."""

import pytest

from ipc.messages import Begin, Refused, Scale
from supervisor.clients import request_checks, scaling


def test_a_client_may_wait_behind_the_last_event_and_not_behind_the_next() -> None:
    assert request_checks.not_told_yet("s", 3, 3) is None
    refused = request_checks.not_told_yet("s", 4, 3)
    assert refused is not None
    assert refused.code == "conflict"


def test_the_session_that_another_begins_with_has_a_name_too() -> None:
    refused = request_checks.change(Begin("s", "k", from_session=" t"), ())
    assert refused is not None
    assert refused.error.startswith("a session's name has")


def test_seats_per_cpu_are_no_more_than_seats_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "seats_for", lambda per_cpu: 20_000)
    assert scaling.seats_asked(Scale(per_cpu=2.0)) == 10_000


def test_two_numbers_of_seats_are_refused_whatever_they_are() -> None:
    refused = scaling.seats_asked(Scale(seats=0, per_cpu=2.0))
    assert isinstance(refused, Refused)
    assert refused.error == "seats and seats per CPU are both given"
