"""`hermesctl top`: the service live in a terminal, or as one plain frame, or as lines of JSON."""

import sys
import time

import click

from hermesctl.extras import extra
from hermesctl.parameters import seconds
from ipc.places import Places

_DEFAULT_SECONDS = 1.0
# Without a terminal a frame is as wide as a page.
_PAGE_COLUMNS = 110
_EXAMPLES = """\b
Examples:
  hermesctl top
  hermesctl top --every 5
  hermesctl top --once
  hermesctl top --json | jq .rates

\b
Keys: i interrupt, w why, d drain, + - seats, s order, / filter, Tab next table, ? help, q quit.
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--every",
    "interval_seconds",
    **seconds(0.1, 3600),
    default=_DEFAULT_SECONDS,
    show_default=True,
    help="Time between two looks.",
)
@click.option("--once", "looks", flag_value="one", default="many", help="One look, then leave.")
@click.option("--json", "form", flag_value="json", default="screen", help="Print one sample a line.")
@click.pass_obj
def top(places: Places, interval_seconds: float, looks: str, form: str) -> None:
    """Watch seats, sessions, queue, services and costs live."""
    if form == "json":
        _print_samples(places, interval_seconds, looks)
    elif looks == "one":
        _print_frame(places)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        with extra("tui", "top needs the packages for terminals; --once and --json do not"):
            from hermesctl.top.screen import Top
        Top(places, interval_seconds).run()
    else:
        raise click.UsageError("top needs a terminal; --once and --json do not")


def _print_frame(places: Places) -> None:
    import os

    from hermesctl.render import paint_line
    from hermesctl.top.frame import plain_frame
    from hermesctl.top.polling import Connection
    from hermesctl.top.sample import Trail

    connection = Connection(places)
    try:
        sample = connection.look()
    finally:
        connection.close()
    room = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _PAGE_COLUMNS
    print("\n".join(paint_line(each, sys.stdout) for each in plain_frame(sample, Trail(), room)))


def _print_samples(places: Places, interval_seconds: float, looks: str) -> None:
    """A missing supervisor is a line too, so that a plot shows the gap. Only `--once` fails then."""
    from hermesctl.neutral import json_text
    from hermesctl.top.polling import Connection, look_or_reason
    from hermesctl.top.sample import Trail

    connection, trail = Connection(places), Trail()
    try:
        while True:
            found = connection.look() if looks == "one" else look_or_reason(connection)
            if isinstance(found, str):
                shown = {"at": time.time(), "status": None, "error": found}
            else:
                trail.add(found)
                shown = found.plain() | {"rates": trail.rates()}
            print(json_text(shown), flush=True)
            if looks == "one":
                return
            time.sleep(interval_seconds)
    finally:
        connection.close()
