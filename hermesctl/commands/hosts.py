"""`hermesctl hosts`: one row per host that shares the journal."""

import click

from hermesctl.render import Column, age, one_line
from hermesctl.show_rows import as_json, print_rows, read
from ipc.messages import Show
from ipc.places import Places


def _listed(labels: object) -> str:
    return one_line(", ".join(map(str, labels))) if isinstance(labels, list) else ""


_COLUMNS = (
    Column("name", "host"),
    Column("version", "version"),
    Column("state", "state", state=True),
    Column("lease_seconds", "lease left", lambda left: age(left) if left is not None else "", right=True),
    Column("seats", "seats", right=True),
    Column("free", "free", right=True),
    Column("running", "running", right=True),
    Column("sessions", "sessions", right=True),
    Column("age_seconds", "age", age, right=True, rank=1),
    Column("labels", "labels", _listed, rank=2),
)
_EXAMPLES = """\b
Examples:
  hermesctl hosts
  hermesctl hosts --json
  hermesctl drain --host beta
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def hosts(places: Places, form: str) -> None:
    """List the hosts that share the journal.

    Sessions are those that a host has at the moment: with an open turn, a message that waits, or a worker. A
    host whose lease is over is overdue: another one takes its sessions.
    """
    print_rows(form, read(places, Show("hosts")), _COLUMNS, "no host has the journal")
