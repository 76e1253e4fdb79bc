"""`hermesctl workers`: one row per seat, with the three signs of life: process, loop and progress."""

import click

from hermesctl.render import Column, age, cut_middle, liveness, percent, size
from hermesctl.show_rows import as_json, print_rows, read
from ipc.bounds import ROWS_MAX
from ipc.messages import Show
from ipc.places import Places

_COLUMNS = (
    Column("seat", "seat", right=True),
    Column("pid", "pid", right=True),
    Column("state", "state", state=True),
    Column("agent", "agent", wide=True, shorten=cut_middle, rank=4),
    Column("level", "level", rank=5),
    Column("session", "session", wide=True, shorten=cut_middle, rank=3),
    Column("turn", "turn", wide=True, shorten=cut_middle),
    Column("memory_bytes", "memory", size, right=True),
    Column("cpu_percent", "cpu", percent, right=True),
    Column("processes", "processes", right=True, rank=4),
    Column("age_seconds", "age", age, right=True),
    Column("process", "process", liveness, state=True, rank=5),
    Column("loop", "loop", liveness, state=True, rank=5),
    Column("progress", "progress", liveness, state=True, rank=4),
    Column("turns", "turns", right=True, rank=6),
    Column("incarnation", "incarnation", right=True, rank=7),
    Column("words", "last words", wide=True, rank=2),
)
_EXAMPLES = """\b
Examples:
  hermesctl workers
  hermesctl workers --json
"""


@click.command(epilog=_EXAMPLES)
@as_json
@click.pass_obj
def workers(places: Places, form: str) -> None:
    """List the workers: what each one does and costs."""
    print_rows(form, read(places, Show("workers", limit=ROWS_MAX)), _COLUMNS, "no workers yet")
