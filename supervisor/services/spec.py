"""What a service is to be: its module, its options and its limits; says nothing of how it is doing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RestartPolicy:
    """How long a service rests before its next start: doubled with every failure in a row, up to a limit."""

    first_seconds: float = 0.5
    # Half a minute: soon enough to mend itself after `models pull`, seldom enough to cost nothing.
    max_seconds: float = 30.0
    # Serving this long ends a row of failures.
    steady_seconds: float = 30.0
    # From this failure in a row on the service is called failed, not resting. It is still tried.
    failed_after: int = 5

    def rest_seconds(self, failures: int) -> float:
        """The pause after the given failure in a row, counted from 1."""
        # The exponent is cut so that a service that failed for a year cannot overflow a float.
        return min(self.first_seconds * 2.0 ** min(failures - 1, 64), self.max_seconds)


@dataclass(frozen=True)
class Needed:
    """Files without which a service cannot work: it waits for them, and no process is started in vain."""

    files: tuple[Path, ...]
    fault: str
    hint: str

    @property
    def are_there(self) -> bool:
        return all(file.exists() for file in self.files)


@dataclass(frozen=True)
class ServiceSpec:
    """One service: `python -m module`, given `options` on standard input."""

    name: str
    module: str
    options: dict[str, Any]
    start_deadline_seconds: float
    # Ten missed beats: a busy machine delays a beat by seconds, a wedged process for ever.
    silence_seconds: float = 10.0
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    # Names of environment variables it needs beyond the common ones.
    environment: tuple[str, ...] = ()
    needed: Needed | None = None

    def __repr__(self) -> str:
        """Without the options: they hold keys, and a repr ends in logs."""
        return f"ServiceSpec(name={self.name!r}, module={self.module!r})"
