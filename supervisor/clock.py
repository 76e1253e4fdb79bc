"""The only clock of the supervisor: time of day for people, and a time that never runs backwards."""

import time


def monotonic() -> float:
    """Return seconds since some moment; for deadlines and ages, meaningless outside this process."""
    return time.monotonic()


def boottime() -> float:
    """Return seconds since the machine has started; it counts those in which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def time_of_day(at: float) -> str:
    """Return a moment of the Clock in local time."""
    return time.strftime("%H:%M:%S", time.localtime(at))


class Clock:
    """Time of day, read once, then advanced by the monotonic clock: setting the clock back has no effect.

    Neither has setting it back while the service was stopped: the first moment is never before `not_before`.
    """

    def __init__(self, not_before: float = 0.0) -> None:
        now = time.time()
        self.behind_seconds = max(0.0, not_before - now)
        self._offset_seconds = now + self.behind_seconds - time.monotonic()

    def now(self) -> float:
        return self._offset_seconds + time.monotonic()
