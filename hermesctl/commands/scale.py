"""`hermesctl scale`: how many turns may run at once, changed while they run."""

import re

import click

from hermesctl.client import Client
from hermesctl.render import one_line
from ipc.endpoints import Places
from ipc.messages import Done, Scale

_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(/cpu)?")
_EXAMPLES = """\b
Examples:
  hermesctl scale
  hermesctl scale 8
  hermesctl scale 2/cpu
"""


@click.command(epilog=_EXAMPLES)
@click.argument("amount", required=False)
@click.pass_obj
def scale(places: Places, amount: str | None) -> None:
    """Change how many turns may run at once, or show it.

    AMOUNT is a number of seats, or a number per CPU. New seats are filled at once. Seats that are given up
    leave when they are idle: no running turn is touched. It lasts until the service ends; [workers] in
    hermes.toml keeps it.
    """
    client = Client(places)
    try:
        print(one_line(client.ask(_request(amount), Done).note))
    finally:
        client.close()


def _request(amount: str | None) -> Scale:
    if amount is None:
        return Scale()
    found = _AMOUNT.fullmatch(amount)
    if found is None or (found[2] is None and "." in found[1]):
        raise click.UsageError(f"{amount!r} is no number of seats: say 8 or 2/cpu")
    return Scale(per_cpu=float(found[1])) if found[2] else Scale(seats=int(found[1]))
