"""Limits of the gateway by a clock that the test sets."""

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
