"""What a service is to be: its module, its options and its limits; says nothing of how it is doing."""

import importlib.util
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
    """What a service cannot work without: it waits for it, and no process is started in vain.

    `packages` are names to import. They are looked for, never imported here.
    """

    fault: str
    hint: str
    files: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        return all(file.exists() for file in self.files) and all(
            importlib.util.find_spec(package) is not None for package in self.packages
        )


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
    # The first that is missing is told.
    needed: tuple[Needed, ...] = ()

    def __repr__(self) -> str:
        """Without the options: they hold keys, and a repr ends in logs."""
        return f"ServiceSpec(name={self.name!r}, module={self.module!r})"
