"""`python -m supervisor.host.agent_list`: the agents of hermes.toml, as JSON; changes nothing.

`hermesctl agents` calls it when the service does not run, and before it prepares an interpreter.
"""

import argparse
import json
import sys

from ipc.places import add_options, chosen_places
from supervisor.config.derived import runtimes
from supervisor.config.settings import load
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
    print(json.dumps({"agents": [runtime.cold_row(agent, sys.executable) for agent, runtime in found]}))


if __name__ == "__main__":
    main()
