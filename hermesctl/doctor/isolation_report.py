"""`doctor --isolation`: a trial, judged and printed, one line an attack."""

import sys

from hermesctl.doctor.promises import Judged, column, judge
from hermesctl.doctor.trial import Found, run
from hermesctl.exit_codes import Exit
from hermesctl.render import folded, one_line, paint
from hermesctl.show_rows import print_json
from ipc.isolation import ATTACKS
from ipc.places import Places

# Behind the sign, the row and the longest name.
_INDENT = 25


def examine_isolation(places: Places, agent: str, form: str) -> int:
    """Tries the cells of that agent; the exit code tells whether an attack is open that should be held."""
    found = run(places, agent)
    by_name = {attack.name: attack for attack in ATTACKS}
    in_column = column(found.level, found.cell)
    judged = [judge(by_name[result.name], result, in_column, found.network) for result in found.results]
    if form == "json":
        print_json(_as_json(agent, found, judged))
    else:
        _print(agent, found, judged)
    return Exit.REFUSED if any(each.is_fault for each in judged) else Exit.DONE


def _as_json(agent: str, found: Found, judged: list[Judged]) -> dict[str, object]:
    rows = [
        {
            "attack": each.attack.name,
            "row": each.attack.row,
            "tried": each.attack.tried,
            "verdict": each.result.verdict,
            "promise": each.promise,
            "seen": each.result.seen,
            "why": each.why,
        }
        for each in judged
    ]
    made = {"agent": agent, "turn": found.turn, "level": found.level, "cell": found.cell}
    return made | {"network": found.network, "attacks": rows}


def _print(agent: str, found: Found, judged: list[Judged]) -> None:
    made = f"level {found.level}, cell {found.cell}, network {found.network}"
    print(f"agent {one_line(agent)}: {made} ({one_line(found.turn)})")
    for each in judged:
        print(_line(each))
    print(_summary(judged))


def _line(each: Judged) -> str:
    sign, colour = _sign(each)
    fact = f"{each.result.verdict}: {one_line(each.attack.tried)} ({one_line(each.result.seen)})"
    head = f"{paint(sign, colour, sys.stdout)} {each.attack.row:<4}{each.attack.name:<{_INDENT - 7}} "
    line = head + folded(fact, _INDENT, sys.stdout)
    if not each.why:
        return line
    why = folded(f"→ {one_line(each.why)}", _INDENT, sys.stdout)
    return f"{line}\n{'':<{_INDENT}}{paint(why, 'bold' if each.is_fault else 'dim', sys.stdout)}"


def _sign(each: Judged) -> tuple[str, str]:
    if each.is_fault:
        return "✘", "red"
    return {"held": ("✔", "green"), "open": ("!", "yellow")}.get(each.result.verdict, ("–", "dim"))


def _summary(judged: list[Judged]) -> str:
    held = sum(each.result.verdict == "held" for each in judged)
    faults = sum(each.is_fault for each in judged)
    let_through = sum(each.result.verdict == "open" and not each.is_fault for each in judged)
    absent = sum(each.result.verdict == "absent" for each in judged)
    parts = [f"{held} held"]
    parts += [f"{faults} ✘ that should be held"] * bool(faults)
    parts += [f"{let_through} ! open, as settings and host have it"] * bool(let_through)
    parts += [f"{absent} – with nothing to try here"] * bool(absent)
    return paint(" · ".join(parts), "red" if faults else "green", sys.stdout)
