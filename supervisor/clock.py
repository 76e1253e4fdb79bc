"""The only clock of the supervisor: time of day for people, and a time that never runs backwards."""

import time


def monotonic() -> float:
    """Seconds since some moment; for deadlines and ages, meaningless outside this process."""
    return time.monotonic()


class Clock:
    """Time of day, read once, then carried on by the monotonic clock: a clock set back changes nothing."""

    def __init__(self) -> None:
        self._offset_seconds = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset_seconds + time.monotonic()
