"""`hermesctl drain`: no new turn begins, those that run finish."""

import click

from hermesctl.client import Client
from hermesctl.draining import drain_and_wait
from hermesctl.render import one_line
from ipc.endpoints import Places
from ipc.messages import Done, Drain

_EXAMPLES = """\b
Examples:
  hermesctl drain
  hermesctl drain --wait
  hermesctl undrain
"""


@click.command(epilog=_EXAMPLES)
@click.option("--wait", "until", flag_value="end", default="asked", help="Return when no turn runs any more.")
@click.pass_obj
def drain(places: Places, until: str) -> None:
    """Begin no new turns; those that run finish.

    What is said meanwhile is accepted and waits, until `hermesctl undrain` or the next start.
    """
    if until == "end":
        drain_and_wait(places, None)
        print("drained: no turn runs")
        return
    client = Client(places)
    try:
        print(one_line(client.ask(Drain(), Done).note))
    finally:
        client.close()
