"""Limits of the gateway by a clock that the test sets."""

import pytest

from gateway.errors import HttpError
from gateway.limiter import _REQUESTS_AT_ONCE, _REQUESTS_PER_SECOND, Limiter


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
