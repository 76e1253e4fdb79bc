"""`hermesctl doctor`: what is wrong and how to mend it, one line each; it changes nothing."""

import sys
from typing import TYPE_CHECKING

import click

from hermesctl.exits import Exit
from hermesctl.render import folded, one_line, paint
from hermesctl.rows import as_json, print_json
from ipc.endpoints import Places

if TYPE_CHECKING:
    from hermesctl.doctor.finding import Finding, Verdict

_SIGNS: "dict[Verdict, tuple[str, str]]" = {
    "good": ("✔", "green"),
    "care": ("!", "yellow"),
    "bad": ("✘", "red"),
}
# Facts stand under each other, behind the sign and the longest name.
_INDENT = 23
_EXAMPLES = """\b
Examples:
  hermesctl doctor
  hermesctl doctor --json
  hermesctl --home ./trial doctor && hermesctl --home ./trial start

\b
✔ is well, ! works but deserves a look, ✘ is wrong.
Exit codes: 0 nothing is ✘, 5 something is.
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def doctor(places: Places, form: str) -> int:
    """Look for what is wrong on this host, and say how to mend it."""
    from hermesctl.doctor.checkup import examine

    found = []
    for finding in examine(places):
        found.append(finding)
        if form != "json":
            print(_line(finding), flush=True)
    if form == "json":
        fields = ("check", "verdict", "fact", "remedy")
        print_json([{name: getattr(finding, name) for name in fields} for finding in found])
    else:
        print(_summary(found))
    return Exit.REFUSED if any(finding.verdict == "bad" for finding in found) else Exit.DONE


def _line(finding: "Finding") -> str:
    sign, colour = _SIGNS[finding.verdict]
    fact = folded(one_line(finding.fact), _INDENT, sys.stdout)
    line = f"{paint(sign, colour, sys.stdout)} {finding.check:<{_INDENT - 3}} {fact}"
    if not finding.remedy:
        return line
    remedy = folded(f"→ {one_line(finding.remedy)}", _INDENT, sys.stdout)
    return f"{line}\n{'':<{_INDENT}}{paint(remedy, 'bold', sys.stdout)}"


def _summary(found: "list[Finding]") -> str:
    wrong = sum(finding.verdict == "bad" for finding in found)
    doubtful = sum(finding.verdict == "care" for finding in found)
    if not wrong and not doubtful:
        return paint("all is well", "green", sys.stdout)
    parts = [f"{wrong} ✘ to mend"] * bool(wrong) + [f"{doubtful} ! to look at"] * bool(doubtful)
    return paint(" · ".join(parts), "red" if wrong else "yellow", sys.stdout)
