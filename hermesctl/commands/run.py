"""`hermesctl run`: becomes the supervisor; the process is replaced, so signals and exit codes are its own."""

import os
import sys

import click

from ipc import interpreter
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl run
  hermesctl --home ./trial run
"""


@click.command(epilog=_EXAMPLES)
@click.option("--system", "place", flag_value="--system", help="As the unit of the whole machine runs it.")
@click.pass_obj
def run(places: Places, place: str | None) -> None:
    """Run the supervisor in the foreground."""
    sys.stdout.flush()
    line = interpreter.command("supervisor", *((place,) if place else places.arguments))
    os.chdir(interpreter.WORKING_DIRECTORY)
    os.execve(line[0], line, interpreter.without_code(os.environ))
