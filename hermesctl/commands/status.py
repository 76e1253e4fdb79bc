"""`hermesctl status`: the service in a few lines, with its hints."""

import sys
from typing import Any

import click

from hermesctl.client import ANSWER_SECONDS
from hermesctl.errors import NotRunning
from hermesctl.render import age, ago, folded, one_line, paint, paint_state, plain, size
from hermesctl.show_rows import as_json, print_json, read
from hermesctl.systemd import installed_unit
from ipc.messages import Show
from ipc.places import Places

_VALUE_INDENT = 12
_EXAMPLES = """\b
Examples:
  hermesctl status
  hermesctl status --json
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def status(places: Places, form: str) -> None:
    """Show the state of the supervisor."""
    unit = installed_unit(places)
    try:
        row = read_status(places)
    except NotRunning as error:
        if unit is not None:
            error.fault += f" ({unit.sentence()})"
        raise
    if unit is not None:
        row["unit"] = unit.sentence()
    if form == "json":
        print_json(row)
    else:
        print("\n".join(_lines(row)))


def read_status(places: Places, timeout_seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
    rows = read(places, Show("status"), timeout_seconds=timeout_seconds)
    if not rows:
        raise NotRunning("the supervisor does not say how it is", "hermesctl stop, then hermesctl start")
    return rows[0]


def _questions(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The line about open questions, if there are any."""
    found = row.get("questions") or {}
    if not found.get("open"):
        return ()
    return (("questions", f"{plain(found['open'])} open, the oldest for {age(found.get('oldest_seconds'))}"),)


def _lines(row: dict[str, Any]) -> list[str]:
    def of(key: str) -> str:
        return plain(row.get(key))

    state = of("state")
    head = f"hermes supervisor {of('version')} · pid {of('pid')} · up {age(row.get('uptime_seconds'))}"
    asking = f" · {of('asking')} asking" if row.get("asking") else ""
    facts = (
        *_draining(row),
        ("model", of("model")),
        ("workers", f"{of('busy')} busy · {of('idle')} idle · {of('seats')} seats + {of('spares')} spare"),
        ("turns", f"{of('running')} running · {of('queued')} queued{asking} · {of('turns_ended')} ended"),
        *_questions(row),
        ("sessions", f"{of('sessions_live')} live · {of('waiting')} messages waiting"),
        ("memory", size(row.get("memory_bytes"))),
        ("cell", of("cell")),
        *_console(row),
        *_hosts(row),
        ("home", of("home")),
        *((("unit", of("unit")),) if "unit" in row else ()),
        ("epoch", of("epoch")),
    )
    lines = [f"{paint_state(state, sys.stdout)} · {head}"]
    lines += [
        f"  {paint(f'{name:<9}', 'dim', sys.stdout)} {folded(value, _VALUE_INDENT, sys.stdout)}"
        for name, value in facts
    ]
    for late in row.get("late") or ():
        text = f"late: {one_line(late['what'])} for {age(late['seconds'])}: {one_line(late['detail'])}"
        lines.append(paint(f"  {text}", "red", sys.stdout))
    hints = row.get("hints") or ()
    return lines + [paint(f"  hint: {one_line(hint)}", "yellow", sys.stdout) for hint in hints]


def console_of(row: dict[str, Any]) -> str:
    """The address of the web console; empty while there is none."""
    return str((row.get("gateway") or {}).get("console") or "")


def _console(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    address = plain(console_of(row))
    return (("console", f"{address} · `hermesctl pair` prints a code for it"),) if address else ()


def _hosts(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The line about the hosts that share the journal, if there are others."""
    others = [one_line(each["name"]) + _unless_open(each) for each in row.get("other_hosts") or ()]
    return (("hosts", " · ".join([f"{plain(row.get('host'))} (this one)", *others])),) if others else ()


def _unless_open(host: dict[str, Any]) -> str:
    return "" if host["state"] == "open" else f" {one_line(host['state'])}"


def _draining(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    if not row.get("draining"):
        return ()
    since = f"since {ago(row.get('draining_since'))}, no new turn begins"
    return (("draining", f"{since}; {plain(row.get('running'))} still running"),)
