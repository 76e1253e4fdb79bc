"""A reading command in one step: ask for rows, then print them as JSON or as a table."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from hermesctl.client import ANSWER_SECONDS, Client
from hermesctl.render import Column, paint, table
from ipc.endpoints import Places
from ipc.messages import Show, Table

as_json = click.option("--json", "form", flag_value="json", default="table", help="Print JSON.")


def read(places: Places, show: Show, timeout_seconds: float = ANSWER_SECONDS) -> tuple[dict[str, Any], ...]:
    client = Client(places)
    try:
        return client.ask(show, Table, timeout_seconds).rows
    finally:
        client.close()


def print_rows(form: str, rows: Sequence[dict[str, Any]], columns: Sequence[Column], nothing: str) -> None:
    """`nothing` is what a person reads when there are no rows."""
    if form == "json":
        print_json(list(rows))
    elif rows:
        print(table(columns, rows, sys.stdout))
    else:
        print(paint(nothing, "dim", sys.stdout))


def print_json(value: object) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
