"""A reading command in one step: ask for rows, then print them as JSON or as a table."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from hermesctl.client import ANSWER_SECONDS, Client
from hermesctl.neutral import json_text
from hermesctl.pager import no_pager, show
from hermesctl.render import Column, paint, table
from ipc.messages import Show
from ipc.places import Places


def as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a reading command its options: --json and --no-pager."""
    option = click.option("--json", "form", flag_value="json", default="table", help="Print JSON.")
    return option(no_pager(command))


def read(
    places: Places, what: Show, at_most: int | None = None, timeout_seconds: float = ANSWER_SECONDS
) -> tuple[dict[str, Any], ...]:
    """The rows of a table; without `at_most` all of them."""
    client = Client(places)
    try:
        return tuple(client.rows(what, at_most, timeout_seconds))
    finally:
        client.close()


def print_rows(form: str, rows: Sequence[dict[str, Any]], columns: Sequence[Column], nothing: str) -> None:
    """`nothing` is the text for a person when there are no rows."""
    if form == "json":
        print_json(list(rows))
    elif rows:
        show(table(columns, rows, sys.stdout))
    else:
        print(paint(nothing, "dim", sys.stdout))


def print_json(value: object) -> None:
    print(json_text(value, indent=2))
