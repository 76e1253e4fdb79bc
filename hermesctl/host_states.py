"""Asks a host that shares the journal to drain or to go on, and waits until it does; by any other host."""

import time
from collections.abc import Callable
from typing import Any

import click

from hermesctl import completing
from hermesctl.client import Client
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name, quoted
from hermesctl.waiting import Waiting
from ipc.messages import Done, Drain, Show, Undrain
from ipc.places import Places

_LOOK_SECONDS = 0.2
# A host reads its row with each renewal of its lease, several times in a lease.
_ANSWER_SECONDS = 30.0


def host_option(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option(
        "--host", **name("NAME"), shell_complete=completing.hosts, help="A host of `hermesctl hosts`."
    )
    return option(command)


def ask_host(
    places: Places, host: str, request: Drain | Undrain, state: str, is_empty: bool = False
) -> dict[str, Any]:
    """Returns the row of the host once it is in that state and, with `is_empty`, no turn runs there."""
    client = Client(places)
    waiting = Waiting()
    asked_at = time.monotonic()
    try:
        client.ask(request, Done)
        while True:
            row = next((each for each in client.rows(Show("hosts")) if each["name"] == host), None)
            if row is None:
                raise CommandError(f"host {quoted(host)} is gone", "hermesctl hosts", Exit.REFUSED)
            if row["state"] == state and not (is_empty and row["running"]):
                return row
            if row["state"] != state and time.monotonic() - asked_at > _ANSWER_SECONDS:
                fault = f"host {quoted(host)} was asked, and is {row['state']}"
                raise CommandError(
                    fault, "hermesctl hosts shows it; it still does so when it can", Exit.REFUSED
                )
            waiting.say(f"waiting for host {host}: {row['state']}, {row['running']} turns running")
            client.receive(_LOOK_SECONDS)
    finally:
        client.close()
