"""Verdicts on faults that no registered test noticed: one file a module, named after it.

A file lists functions, under each the anchors of faults, and under each of these its verdict with a reason:

    Server.close
        a(b) => pass
            equivalent: the only caller ends the process next

`equivalent` says that the fault makes no difference, `accepted` that a test would cost more than it is worth.
`survived` is what the hunt writes: it still needs a test or a verdict.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.mutant import Mutant

FOLDER = Path(__file__).with_name("verdicts")
KINDS = ("equivalent", "accepted", "survived")
Key = tuple[str, str]


@dataclass(frozen=True)
class Verdict:
    kind: str
    reason: str


def key_of(fault: Mutant) -> Key:
    """By what a verdict is found again: names of variables and the line are not in it."""
    return fault.scope, fault.anchor


def read(module: str, folder: Path = FOLDER) -> dict[Key, Verdict]:
    path = folder / f"{module}.txt"
    return dict(_parsed(path.name, path.read_text())) if path.exists() else {}


def _parsed(name: str, text: str) -> Iterator[tuple[Key, Verdict]]:
    scope = anchor = ""
    for line in text.splitlines():
        match len(line) - len(line.lstrip()):
            case 0:
                scope = line
            case 4:
                anchor = line.strip()
            case _:
                kind, _, reason = line.strip().partition(":")
                if kind not in KINDS or (kind != "survived" and not reason.strip()):
                    raise ValueError(f"{name}: `{line.strip()}` is no verdict. Write `accepted: REASON`.")
                yield (scope, anchor), Verdict(kind, reason.strip())


def write(module: str, verdicts: dict[Key, Verdict], folder: Path = FOLDER) -> None:
    path = folder / f"{module}.txt"
    if not verdicts:
        path.unlink(missing_ok=True)
        return
    lines: list[str] = []
    scope = ""
    for (name, anchor), verdict in sorted(verdicts.items()):
        if name != scope:
            scope = name
            lines.append(scope)
        ending = f"{verdict.kind}: {verdict.reason}" if verdict.reason else verdict.kind
        lines += [f"    {anchor}", f"        {ending}"]
    folder.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
