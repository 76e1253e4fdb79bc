"""Counters, histograms and gauges, and their Prometheus text format; independent of what they count.

The official client library would import an HTTP server into this process, which has none.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample in Prometheus' sense."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(Protocol):
    """One metric: a name, a kind, a help text, and its current samples."""

    name: str
    kind: str
    help: str

    def samples(self) -> Iterator[Sample]: ...


class Counter:
    """Only grows. `known` label values exist from the start at 0, so that their first increase is visible."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = (), known: Iterable[str] = ()) -> None:
        self.name = name
        self.help = help
        self._labels = labels
        self._values: dict[Labels, float] = {(value,): 0.0 for value in known}
        if not labels:
            self._values[()] = 0.0

    def add(self, *labels: str, amount: float = 1.0) -> None:
        self._values[labels] = self._values.get(labels, 0.0) + amount

    def total(self, *labels: str) -> float:
        """Return the total for these labels; for all when none are given."""
        return self._values.get(labels, 0.0) if labels else sum(self._values.values())

    def samples(self) -> Iterator[Sample]:
        for labels, value in self._values.items():
            yield Sample(self.name, tuple(zip(self._labels, labels, strict=True)), value)


class Histogram:
    """Counts how often a value was at most each bound."""

    kind = "histogram"

    def __init__(self, name: str, help: str, bounds: tuple[float, ...]) -> None:
        self.name = name
        self.help = help
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[Sample]:
        count = 0
        for bound, found in zip((*self._bounds, float("inf")), self._counts, strict=True):
            count += found
            yield Sample(f"{self.name}_bucket", (("le", _number(bound)),), count)
        yield Sample(f"{self.name}_sum", (), self._sum)
        yield Sample(f"{self.name}_count", (), count)


class Read:
    """A number kept elsewhere, read on request; one for each value of `label`."""

    def __init__(
        self,
        name: str,
        kind: str,
        help: str,
        read: Callable[[], Mapping[str, float] | float],
        label: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self._read = read
        self._label = label

    def samples(self) -> Iterator[Sample]:
        found = self._read()
        if isinstance(found, Mapping):
            for value, number in found.items():
                yield Sample(self.name, ((self._label, value),), number)
        else:
            yield Sample(self.name, (), found)


def rows(families: Iterable[Family]) -> list[dict[str, Any]]:
    """Return the samples as plain mappings."""
    return [
        {"name": sample.name, "labels": dict(sample.labels), "value": sample.value}
        for family in families
        for sample in family.samples()
    ]


def text(families: Iterable[Family]) -> str:
    """Return the text format of Prometheus, version 0.0.4."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        lines += [_line(sample) for sample in family.samples()]
    return "\n".join(lines) + "\n"


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
    return (
        f"{sample.name}{{{labels}}} {_number(sample.value)}"
        if labels
        else f"{sample.name} {_number(sample.value)}"
    )


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
