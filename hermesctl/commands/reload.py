"""`hermesctl reload`: reads hermes.toml again; shows each change and when it takes effect."""

import sys

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, print_object
from hermesctl.render import one_line, paint
from ipc.messages import Reload, Table
from ipc.places import Places

_COLOURS = {"restart": "yellow"}
_EXAMPLES = """\b
Examples:
  hermesctl reload
  hermesctl reload --json
  hermesctl reload --yes
"""


@click.command(epilog=_EXAMPLES)
@click.option("--yes", "confirmed", is_flag=True, help="Also if the file takes the configured model away.")
@acting
@click.pass_obj
def reload(places: Places, confirmed: bool, form: str) -> None:
    """Read hermes.toml again, live where that is possible.

    A file that cannot be used is refused with its line and a hint, and the settings in force stay. So is one
    without the [model] that is in force, unless --yes is given.
    """
    client = Client(places)
    try:
        rows = client.ask(Reload(confirmed), Table).rows
    finally:
        client.close()
    if form == "json":
        print_object({"changes": rows})
        return
    for row in rows:
        print(paint(one_line(row["text"]), _COLOURS.get(row["applies"], ""), sys.stdout))
    if not rows:
        print("nothing has changed")
