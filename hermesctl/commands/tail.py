"""`hermesctl tail`: events as they happen; continues when the supervisor comes back."""

import sys
from contextlib import suppress
from typing import NoReturn

import click

from hermesctl import completing
from hermesctl.acknowledging import Acknowledging
from hermesctl.errors import CommandError
from hermesctl.event_format import clock, gist, json_line
from hermesctl.event_stream import EventStream
from hermesctl.parameters import name, whole
from hermesctl.render import aside, one_line, paint
from hermesctl.session_check import no_such_session
from ipc.messages import Answer, Delta, Event, Noted
from ipc.places import Places

# A watcher is left running over nights and upgrades; Ctrl-C ends it.
_PATIENCE_SECONDS = 7 * 86400.0
# As many as the journal can count.
_SEQ_MAX = 2**53
_COLOURS = {
    "turn.done": "green",
    "turn.failed": "red",
    "attempt.lost": "red",
    "attempt.stuck": "red",
    "turn.interrupted": "magenta",
    "turn.opened": "cyan",
    "question.asked": "yellow",
}
_EXAMPLES = """\b
Examples:
  hermesctl tail
  hermesctl tail demo --after 0
  hermesctl tail demo --json
  hermesctl tail demo --json --cursor bridge
  hermesctl tail tomorrow --wait
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), required=False, shell_complete=completing.sessions)
@click.option("--after", **whole(0, _SEQ_MAX, "SEQ"), help="Begin after this seq; 0 is the beginning.")
@click.option(
    "--cursor",
    **name("NAME"),
    help="Go on behind what was printed under this name before, also across restarts.",
)
@click.option(
    "--wait", "begin", flag_value="any", default="known", help="Also for a session that has not begun yet."
)
@click.option(
    "--json", "form", flag_value="json", default="lines", help="Print one event a line, deltas too."
)
@click.pass_obj
def tail(
    places: Places, session: str | None, after: int | None, cursor: str | None, begin: str, form: str
) -> None:
    """Print events as they happen."""
    if session is None and (after is not None or cursor):
        option = "--cursor" if cursor else "--after"
        raise click.UsageError(f"{option} counts within one session: name the SESSION")
    stream = EventStream(places, session, after, cursor=cursor or "")
    if session is not None and begin == "known" and not stream.is_known:
        raise no_such_session(stream.client, session)
    acknowledging = Acknowledging(stream, cursor, session) if session is not None and cursor else None
    try:
        _watch(stream, acknowledging, form)
    finally:
        if acknowledging is not None:
            with suppress(CommandError):  # it is ending anyway, and unacknowledged events are printed again
                acknowledging.finish()
        stream.close()


def _watch(stream: EventStream, acknowledging: Acknowledging | None, form: str) -> NoReturn:
    while True:
        item = stream.next()
        if item is not None:
            _show(item, form)
        elif stream.is_lost():
            aside("the supervisor is gone; waiting for it to return …")
            stream.reconnect(_PATIENCE_SECONDS)
            aside("the supervisor is back")
            if acknowledging is not None:
                acknowledging.connection_lost()
        if acknowledging is not None:
            acknowledging.shown(item)


def _show(item: Answer, form: str) -> None:
    if form == "json" and isinstance(item, Event | Delta | Noted):
        print(json_line(item), flush=True)
    elif isinstance(item, Event):
        print(_line(item), flush=True)
    elif isinstance(item, Noted) and not item.replaces:
        # Of a count that grows, each step would be a line.
        aside(f"{'':12}  {one_line(item.turn)}  {one_line(item.text)}")


def _line(event: Event) -> str:
    kind = paint(f"{one_line(event.type):<18}", _COLOURS.get(event.type, "dim"), sys.stdout)
    at = paint(clock(event.at), "dim", sys.stdout)
    return f"{at}  {one_line(event.session):<12}  {event.seq:>4}  {kind}  {gist(event)}"
