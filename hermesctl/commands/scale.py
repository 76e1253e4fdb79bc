"""`hermesctl scale`: how many turns may run at once, changed while they run."""

import re

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, tell
from hermesctl.parameters import quoted
from ipc.messages import Done, Scale, Show, Table
from ipc.places import Places

_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(/cpu)?")
_EXAMPLES = """\b
Examples:
  hermesctl scale
  hermesctl scale 8
  hermesctl scale 2/cpu
  hermesctl scale 8 --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("amount", required=False)
@acting
@click.pass_obj
def scale(places: Places, amount: str | None, form: str) -> None:
    """Change how many turns may run at once, or show it.

    AMOUNT is a number of seats, or a number per CPU. New seats are filled at once. Seats that are given up
    leave when they are idle: no running turn is touched. It lasts until the service ends; [workers] in
    hermes.toml keeps it.
    """
    request = _request(amount)
    client = Client(places)
    try:
        done = client.ask(request, Done)
        seats = client.ask(Show("status"), Table).rows[0]["seats"] if form == "json" else None
    finally:
        client.close()
    tell(form, done.note, seats=seats, note=done.note)


def _request(amount: str | None) -> Scale:
    if amount is None:
        return Scale()
    found = _AMOUNT.fullmatch(amount)
    if found is None or (found[2] is None and "." in found[1]):
        raise click.UsageError(f"AMOUNT takes a number of seats such as 8 or 2/cpu, not {quoted(amount)}")
    return Scale(per_cpu=float(found[1])) if found[2] else Scale(seats=int(found[1]))
