"""The result of a check, and the input of all checks."""

from dataclasses import dataclass, field
from typing import Any, Literal

from ipc.places import Places

# Good; worth a look, but the service runs; bad: the service or a part of it does not work or is not safe.
Verdict = Literal["good", "care", "bad"]


@dataclass(frozen=True)
class Finding:
    """One line: the check's name, its verdict, the fact, and the hint where there is something to fix."""

    check: str
    verdict: Verdict
    fact: str
    hint: str = ""


@dataclass(frozen=True)
class Surroundings:
    """This instance, as seen from outside, by the service's own checks and, when it runs, by itself."""

    places: Places
    # Output of `python -m supervisor.host.preflight`.
    checkup: dict[str, Any] = field(default_factory=dict)
    # The status row of the running service; None when it does not run.
    status: dict[str, Any] | None = None

    @property
    def pid(self) -> int | None:
        found = self.status.get("pid") if self.status else None
        return found if isinstance(found, int) else None

    def number(self, name: str, otherwise: int) -> int:
        found = self.checkup.get(name)
        return found if isinstance(found, int) else otherwise


def good(check: str, fact: str) -> Finding:
    return Finding(check, "good", fact)


def care(check: str, fact: str, hint: str) -> Finding:
    return Finding(check, "care", fact, hint)


def bad(check: str, fact: str, hint: str) -> Finding:
    return Finding(check, "bad", fact, hint)
