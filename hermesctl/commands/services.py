"""`hermesctl services`: one row per child that is not a worker, with a hint where one has a fault."""

import sys

import click

from hermesctl.render import Column, age, one_line, paint
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show
from ipc.places import Places

_COLUMNS = (
    Column("service", "service"),
    Column("state", "state", state=True),
    Column("pid", "pid", right=True),
    Column("address", "address", rank=3),
    Column("restarts", "restarts", right=True, rank=2),
    Column("age_seconds", "age", age, right=True, rank=1),
    Column("detail", "detail", wide=True, rank=1),
)
_EXAMPLES = """\b
Examples:
  hermesctl services
  hermesctl services --json
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def services(places: Places, form: str) -> None:
    """List the services beside the workers."""
    rows = read(places, Show("services"))
    print_rows(form, rows, _COLUMNS, "no services are set up")
    if form == "json":
        return
    for row in rows:
        if row.get("hint"):
            print(paint(f"{one_line(row['service'])}: {one_line(row['hint'])}", "yellow", sys.stdout))
