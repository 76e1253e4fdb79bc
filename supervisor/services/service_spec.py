"""The specification of a service: its module, its options and its limits; its state is in service.py."""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RestartPolicy:
    """The pause of a service before its next start: doubled with every failure in a row, up to a limit."""

    first_seconds: float = 0.5
    # Soon enough after `models pull`, seldom enough to cost nothing.
    max_seconds: float = 30.0
    # Being ready this long ends a row of failures.
    steady_seconds: float = 30.0
    # From this failure in a row on the state is failed, not resting. The service is still retried.
    failed_after: int = 5

    def rest_seconds(self, failures: int) -> float:
        """Return the pause after the given failure in a row, counted from 1."""
        # The exponent is bounded so that a year of failures cannot overflow a float.
        return min(self.first_seconds * 2.0 ** min(failures - 1, 64), self.max_seconds)


@dataclass(frozen=True)
class Needed:
    """A requirement of a service: while it is missing no process is started.

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
    # Ten missed beats: a busy machine delays a beat by seconds, a stuck process never sends one.
    silence_seconds: float = 10.0
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    # Names of environment variables it needs beyond the common ones.
    environment: tuple[str, ...] = ()
    # Whether a restart in place with another version keeps its process.
    outlives_version: bool = True
    # The first missing one is reported.
    needed: tuple[Needed, ...] = ()

    def __repr__(self) -> str:
        """Omit the options: they hold keys, and a repr ends up in logs."""
        return f"ServiceSpec(name={self.name!r}, module={self.module!r})"
