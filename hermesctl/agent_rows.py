"""The agents of hermes.toml and their runtimes: from the running service, else from the file alone."""

import json
import os
import subprocess
from typing import Any

from hermesctl.errors import CommandError, NotRunning
from hermesctl.exit_codes import Exit
from hermesctl.parameters import quoted
from hermesctl.show_rows import read
from ipc import foreign_python, interpreter
from ipc.launch import VERSION
from ipc.messages import Show
from ipc.places import Places

_LIST_SECONDS = 30.0
Row = dict[str, Any]


def read_agents(places: Places) -> list[Row]:
    """Every agent, with faults that are found without starting it: of its interpreter, or of its program."""
    try:
        rows = list(read(places, Show("agents")))
    except NotRunning:
        rows = in_settings(places)
    return [row | _found_fault(places, row) for row in rows]


def in_settings(places: Places) -> list[Row]:
    """The agents as hermes.toml has them now, whatever a running service has read."""
    done = subprocess.run(
        interpreter.command("supervisor.host.agent_list", *places.arguments),
        capture_output=True,
        text=True,
        timeout=_LIST_SECONDS,
        cwd=interpreter.WORKING_DIRECTORY,
        env=interpreter.without_code(os.environ),
    )
    if done.returncode != 0:
        hint = "python -m supervisor.host.agent_list shows why"
        raise CommandError("the agents of hermes.toml cannot be listed", hint, Exit.SETTINGS)
    found = json.loads(done.stdout)
    if "fault" in found:
        raise CommandError(found["fault"], found["hint"], Exit.SETTINGS)
    agents: list[Row] = found["agents"]
    return agents


def named(rows: list[Row], name: str) -> Row:
    """The row of this agent; the error of the command names the most similar one."""
    import difflib

    names = [str(row.get("agent")) for row in rows]
    if name in names:
        return rows[names.index(name)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"add a table [agents.{name}] to hermes.toml"
    raise CommandError(f"there is no agent {quoted(name)}", hint, Exit.REFUSED)


def _found_fault(places: Places, row: Row) -> Row:
    if row.get("fault"):
        return {}
    if row.get("program") and _is_missing(str(row["program"]), str(row.get("searched", ""))):
        fault = f"there is no program {quoted(str(row['program']))}"
        hint = "install it, or write its whole path as the first word of"
        return {"fault": fault, "hint": f"{hint} [agents.{row['agent']}] command"}
    if not row.get("foreign") or row.get("state") != "cold":
        return {}
    packages = foreign_python.folder(places, VERSION)
    found = foreign_python.fault(str(row["python"]), (packages,), str(row["agent"]))
    return {} if found is None else {"fault": found[0], "hint": found[1]}


def _is_missing(program: str, searched: str) -> bool:
    """True when no folder has it. One that may not be looked into could have it; so could the agent's own."""
    if "/" in program and not program.startswith("/"):
        return False
    places = [program] if "/" in program else [os.path.join(each, program) for each in searched.split(":")]
    for place in places:
        try:
            os.stat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            pass
        return False
    return True
