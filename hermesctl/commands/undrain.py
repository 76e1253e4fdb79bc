"""`hermesctl undrain`: turns begin again."""

import click

from hermesctl.client import Client
from hermesctl.render import one_line
from ipc.endpoints import Places
from ipc.messages import Done, Undrain

_EXAMPLES = """\b
Examples:
  hermesctl undrain
"""


@click.command(epilog=_EXAMPLES)
@click.pass_obj
def undrain(places: Places) -> None:
    """Begin turns again after `hermesctl drain`."""
    client = Client(places)
    try:
        print(one_line(client.ask(Undrain(), Done).note))
    finally:
        client.close()
