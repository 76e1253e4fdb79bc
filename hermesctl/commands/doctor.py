"""`hermesctl doctor`: faults of this host with hints, or the reach of an agent; one line each."""

import sys
from typing import TYPE_CHECKING

import click

from hermesctl import completing
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name
from hermesctl.render import folded, one_line, paint
from hermesctl.show_rows import as_json, print_json
from ipc.places import Places

if TYPE_CHECKING:
    from hermesctl.doctor.finding import Finding, Verdict

_SIGNS: "dict[Verdict, tuple[str, str]]" = {
    "good": ("✔", "green"),
    "care": ("!", "yellow"),
    "bad": ("✘", "red"),
}
# Facts are aligned, after the sign and the longest name.
_INDENT = 23
_EXAMPLES = """\b
Examples:
  hermesctl doctor
  hermesctl doctor --json
  hermesctl --home ./trial doctor && hermesctl --home ./trial start
  hermesctl doctor --isolation
  hermesctl doctor --isolation --agent builder --json

\b
✔ is well, ! works but deserves a look, ✘ is wrong.
With --isolation: ✔ is held, ! is open as the settings or the host have it,
✘ is open and should be held, – has nothing to be tried on here.
Exit codes: 0 nothing is ✘, 5 something is.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--isolation",
    "subject",
    flag_value="isolation",
    default="host",
    help="Try harmless forms of the known attacks from inside a cell of the running service.",
)
@click.option(
    "--agent", **name("NAME"), shell_complete=completing.agents, help="Whose cells to try [default: default]."
)
@as_json
@click.pass_obj
def doctor(places: Places, subject: str, agent: str | None, form: str) -> int:
    """Check this host, and say how to fix what is wrong.

    With --isolation: try what an agent can reach. The attacks run as a turn of the session isolation:NAME, in
    the cell that agent NAME has, without asking a model; `hermesctl why` tells of it. They change nothing.
    """
    if subject == "isolation":
        from hermesctl.doctor.isolation_report import examine_isolation

        return examine_isolation(places, agent or "default", form)
    if agent is not None:
        raise click.UsageError("--agent belongs to --isolation")
    from hermesctl.doctor.all_checks import examine

    found = []
    for finding in examine(places):
        found.append(finding)
        if form != "json":
            print(_line(finding), flush=True)
    if form == "json":
        fields = ("check", "verdict", "fact", "hint")
        print_json([{field: getattr(finding, field) for field in fields} for finding in found])
    else:
        print(_summary(found))
    return Exit.REFUSED if any(finding.verdict == "bad" for finding in found) else Exit.DONE


def _line(finding: "Finding") -> str:
    sign, colour = _SIGNS[finding.verdict]
    fact = folded(one_line(finding.fact), _INDENT, sys.stdout)
    line = f"{paint(sign, colour, sys.stdout)} {finding.check:<{_INDENT - 3}} {fact}"
    if not finding.hint:
        return line
    hint = folded(f"→ {one_line(finding.hint)}", _INDENT, sys.stdout)
    return f"{line}\n{'':<{_INDENT}}{paint(hint, 'bold', sys.stdout)}"


def _summary(found: "list[Finding]") -> str:
    wrong = sum(finding.verdict == "bad" for finding in found)
    doubtful = sum(finding.verdict == "care" for finding in found)
    if not wrong and not doubtful:
        return paint("all is well", "green", sys.stdout)
    parts = [f"{wrong} ✘ to fix"] * bool(wrong) + [f"{doubtful} ! to look at"] * bool(doubtful)
    return paint(" · ".join(parts), "red" if wrong else "yellow", sys.stdout)
