"""Limits: how often a token may ask, and how often an address may be wrong.

A limit is a bucket of permits that fills at a constant rate. Wrong credentials are counted by address, and
beyond the limit the answer is 429 instead of 401. They never count against a good token: whatever other
clients at the same address do, its owner is not locked out. A token's own requests are limited too, and its
open streams, because each holds memory and a descriptor.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.errors import HttpError

_REQUESTS_PER_SECOND = 100.0
_REQUESTS_AT_ONCE = 400.0
_FAILURES_PER_SECOND = 1 / 6
_FAILURES_AT_ONCE = 10.0
# Addresses and tokens that are remembered; the one that was seen longest ago is forgotten first.
_KNOWN_MAX = 10_000
STREAMS_PER_TOKEN_MAX = 1_000
# An upload holds a file and a part of the disk until it is whole.
UPLOADS_PER_TOKEN_MAX = 4


class _Buckets:
    def __init__(self, per_second: float, at_once: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._clock = clock
        # Permits left, and when that was counted.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Returns 0 and takes a permit, or the seconds until there is one."""
        now = self._clock()
        left, at = self._left.pop(key, (self._at_once, now))
        left = min(self._at_once, left + (now - at) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._left[key] = (left - (wait == 0.0), now)
        if len(self._left) > _KNOWN_MAX:
            self._left.popitem(last=False)
        return wait


class _Holders:
    """How many of something each token has open at a time."""

    def __init__(self, most: int, fault: str, hint: str) -> None:
        self._most = most
        self._fault = fault
        self._hint = hint
        self._open: dict[str, int] = {}

    @contextmanager
    def one(self, token: str) -> Iterator[None]:
        count = self._open.get(token, 0)
        if count >= self._most:
            raise HttpError(429, self._fault.format(self._most), self._hint, retry_after_seconds=5.0)
        self._open[token] = count + 1
        try:
            yield
        finally:
            self._open[token] -= 1
            if not self._open[token]:
                del self._open[token]


class Limiter:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._requests = _Buckets(_REQUESTS_PER_SECOND, _REQUESTS_AT_ONCE, clock)
        self._failures = _Buckets(_FAILURES_PER_SECOND, _FAILURES_AT_ONCE, clock)
        self.streams = _Holders(
            STREAMS_PER_TOKEN_MAX, "this token has {:,} open streams", "close some, or use another token"
        )
        self.uploads = _Holders(
            UPLOADS_PER_TOKEN_MAX, "this token uploads {} clips already", "wait until one is complete"
        )

    def request(self, token: str) -> None:
        """Counts a request with a good token."""
        if wait := self._requests.take(token):
            fault = f"this token asks more than {_REQUESTS_PER_SECOND:.0f} times a second"
            raise HttpError(429, fault, "ask less often", retry_after_seconds=wait)

    def failure(self, address: str) -> None:
        """Counts wrong credentials, and refuses further ones while there are too many."""
        if wait := self._failures.take(address):
            fault = "too many wrong tokens or codes came from this address"
            raise HttpError(429, fault, "wait, then use a valid one", retry_after_seconds=wait)
