"""Prints the reasons for waiting: each once, on stderr."""

from hermesctl.render import aside


class Waiting:
    """Remembers the last reason, so that a person reads changes and not repetitions."""

    def __init__(self) -> None:
        self._said = ""

    def say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            aside(f"  {what} …")
