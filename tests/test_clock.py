"""Time never runs backwards, whatever the machine's clock does."""

import time
from collections.abc import Iterator

import pytest

from supervisor.clock import Clock, time_of_day


def test_a_clock_set_back_or_forward_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    before = clock.now()
    for moved in (-86400.0, 86400.0):
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda moved=moved: before + moved)
            assert before <= clock.now() < before + 3600


def test_a_new_life_never_begins_before_the_last_one_ended() -> None:
    ahead = time.time() + 1000
    clock = Clock(not_before=ahead)
    assert ahead <= clock.now() < ahead + 3600
    assert 900 < clock.behind_seconds <= 1000
    assert Clock(not_before=time.time() - 1000).behind_seconds == 0


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nine hours ahead of UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "EAST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_people_read_the_time_of_where_they_are() -> None:
    assert time_of_day(0.0) == "09:00:00"
