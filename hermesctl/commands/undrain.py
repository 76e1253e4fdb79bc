"""`hermesctl undrain`: turns begin again."""

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, tell
from ipc.messages import Done, Undrain
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl undrain
  hermesctl undrain --json
"""


@click.command(epilog=_EXAMPLES)
@acting
@click.pass_obj
def undrain(places: Places, form: str) -> None:
    """Begin turns again after `hermesctl drain`."""
    client = Client(places)
    try:
        done = client.ask(Undrain(), Done)
    finally:
        client.close()
    tell(form, done.note, draining=False, note=done.note)
