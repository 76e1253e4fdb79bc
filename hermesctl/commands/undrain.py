"""`hermesctl undrain`: turns begin again."""

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, tell
from hermesctl.host_states import ask_host, host_option
from ipc.messages import Done, Undrain
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl undrain
  hermesctl undrain --json
  hermesctl undrain --host beta
"""


@click.command(epilog=_EXAMPLES)
@host_option
@acting
@click.pass_obj
def undrain(places: Places, host: str | None, form: str) -> None:
    """Begin turns again after `hermesctl drain`."""
    if host is not None:
        ask_host(places, host, Undrain(host), "open")
        tell(form, f"host {host} begins turns again", host=host, draining=False)
        return
    client = Client(places)
    try:
        done = client.ask(Undrain(), Done)
    finally:
        client.close()
    tell(form, done.note, draining=False, note=done.note)
