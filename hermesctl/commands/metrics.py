"""`hermesctl metrics`: the metrics of the service, in Prometheus' text format."""

import click

from hermesctl.errors import NotRunning
from hermesctl.show_rows import as_json, print_json, read
from ipc.messages import Show
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl metrics
  hermesctl metrics | grep interrupt
  hermesctl metrics --json
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def metrics(places: Places, form: str) -> None:
    """Print the metrics, in Prometheus' text format."""
    rows = read(places, Show("metrics"))
    if not rows:
        raise NotRunning("the supervisor does not say what it counts", "hermesctl stop, then hermesctl start")
    if form == "json":
        print_json([sample for row in rows for sample in row["samples"]])
    else:
        print("".join(row["text"] for row in rows), end="")
