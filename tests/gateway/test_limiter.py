"""Limits of the gateway by a clock that the test sets."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from gateway import limiter as limiter_module
from gateway.errors import HttpError
from gateway.limiter import _REQUESTS_AT_ONCE, _REQUESTS_PER_SECOND, Limiter, _Buckets, _Holders


def test_requests_that_are_refused_do_not_prolong_the_wait() -> None:
    now = 0.0
    limiter = Limiter(lambda: now)
    for _ in range(int(_REQUESTS_AT_ONCE)):
        limiter.request("impatient")
    for _ in range(1000):
        with pytest.raises(HttpError) as refused:
            limiter.request("impatient")
        assert refused.value.retry_after_seconds == pytest.approx(1 / _REQUESTS_PER_SECOND)
    limiter.request("another")
    now = 2 / _REQUESTS_PER_SECOND
    limiter.request("impatient")


def test_what_a_token_has_open_is_bounded_and_given_back() -> None:
    holders = _Holders(2, "it has {}", "close some")
    for _ in range(3):
        with holders.one("greedy"), holders.one("greedy"):
            with pytest.raises(HttpError, match="it has 2"), holders.one("greedy"):
                raise AssertionError
            with holders.one("another"):
                pass
    with pytest.raises(ValueError, match="of the stream"), holders.one("greedy"):
        raise ValueError("of the stream")
    assert holders._open == {}


def test_of_many_addresses_the_one_that_was_seen_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limiter_module, "_KNOWN_MAX", 3)
    buckets = _Buckets(1.0, 1.0, lambda: 0.0)
    for key in ("a", "b", "c", "a", "d"):
        buckets.take(key)
    assert list(buckets._left) == ["c", "a", "d"]
    assert buckets.take("d") > 0, "its permit is used"
    assert buckets.take("b") == 0.0, "it was forgotten"


def taken(limit: Callable[[], None]) -> int:
    """How many permits there are before the first refusal."""
    for count in range(100_000):
        try:
            limit()
        except HttpError:
            return count
    raise AssertionError("there is no limit")


def test_the_limits_of_requests_and_of_wrong_credentials() -> None:
    now = 0.0
    limiter = Limiter(lambda: now)
    assert taken(lambda: limiter.request("t")) == 400
    assert taken(lambda: limiter.failure("a")) == 10
    with pytest.raises(HttpError, match="too many wrong tokens or codes") as refused:
        limiter.failure("a")
    assert refused.value.retry_after_seconds == pytest.approx(6.0)
    now = 1.0
    assert taken(lambda: limiter.request("t")) == 100
    now = 13.0
    assert taken(lambda: limiter.failure("a")) == 2
    # However long it was quiet, there are no more than at first.
    now = 1_000_000.0
    assert taken(lambda: limiter.request("t")) == 400
    assert taken(lambda: limiter.failure("a")) == 10


@pytest.mark.parametrize(("what", "most"), [("streams", 1_000), ("uploads", 4)])
def test_a_token_has_so_many_open_and_no_more(what: str, most: int) -> None:
    holders: _Holders = getattr(Limiter(lambda: 0.0), what)
    with ExitStack() as opened:
        for _ in range(most):
            opened.enter_context(holders.one("t"))
        with pytest.raises(HttpError, match=f"{most:,}") as refused, holders.one("t"):
            raise AssertionError
    assert (refused.value.status, refused.value.retry_after_seconds) == (429, 5.0)


def test_10000_addresses_are_remembered() -> None:
    buckets = _Buckets(1.0, 1.0, lambda: 0.0)
    for number in range(10_001):
        buckets.take(str(number))
    assert len(buckets._left) == 10_000
    assert "0" not in buckets._left


def test_an_error_keeps_its_headers_and_never_asks_for_a_repetition_at_once() -> None:
    error = HttpError(429, "it is full", "wait", retry_after_seconds=0.01, headers=((b"allow", b"GET"),))
    assert error.headers == ((b"allow", b"GET"), (b"retry-after", b"1"))
