"""`python -m supervisor.host.agent_list`: the agents of hermes.toml, as JSON; changes nothing.

`hermesctl agents` calls it when the service does not run, and before it prepares an interpreter.
"""

import argparse
import json
import os
import sys
from typing import Any

from ipc.places import add_options, chosen_places
from supervisor.config.derived import asked_models, program_row, runtimes
from supervisor.config.endpoints import model_key_fault
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError


def main() -> None:
    parser = argparse.ArgumentParser(prog="supervisor.host.agent_list", description="List the agents.")
    add_options(parser)
    try:
        settings = load(chosen_places(parser.parse_args()).settings_file)
    except SettingsError as error:
        print(json.dumps({"fault": error.fault, "hint": error.hint}))
        return
    found = runtimes(settings).items()
    rows = [
        runtime.cold_row(agent, sys.executable)
        | _models(settings, agent)
        | program_row(settings, agent, os.environ)
        for agent, runtime in found
    ]
    print(json.dumps({"agents": rows}))


def _models(settings: Settings, agent: str) -> dict[str, Any]:
    """Return the models that an agent asks, and why the key of one of them cannot be read."""
    names = asked_models(settings, agent)
    fault = next((fault for name in names if (fault := model_key_fault(settings, name)) is not None), None)
    said = {"fault": fault.fault, "hint": fault.hint} if fault is not None else {}
    return {"models": names} | said


if __name__ == "__main__":
    main()
