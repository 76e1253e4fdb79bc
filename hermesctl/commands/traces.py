"""`hermesctl traces`: sends each turn that ends to an OpenTelemetry collector."""

import signal
from types import FrameType
from typing import TYPE_CHECKING

import click

from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.extras import extra
from hermesctl.render import aside
from hermesctl.spans import Spans
from ipc.messages import Event
from ipc.places import Places

if TYPE_CHECKING:
    from hermesctl.otel import Collector

# It runs as long as the service does; Ctrl-C or systemd ends it.
_PATIENCE_SECONDS = 7 * 86400.0
_EXAMPLES = """\b
Examples:
  hermesctl traces --to http://127.0.0.1:4318/v1/traces
  OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer …" hermesctl traces --to https://otel.example.com/v1/traces
"""


@click.command(epilog=_EXAMPLES)
@click.option("--to", "url", required=True, metavar="URL", help="Where the collector takes OTLP over HTTP.")
@click.pass_obj
def traces(places: Places, url: str) -> None:
    """Send a trace of every turn that ends to an OpenTelemetry collector.

    Runs until it is ended, and goes on by itself when the supervisor comes back. A trace has times, ids,
    outcomes and numbers; no text of anybody.
    """
    if not url.startswith(("http://", "https://")):
        raise click.UsageError("--to takes an address such as http://127.0.0.1:4318/v1/traces")
    collector = _collector(url, str(places.state))
    signal.signal(signal.SIGTERM, _end)
    stream = EventStream(places, None, None)
    aside(f"turns that end from now on are sent to {url}")
    try:
        _follow(stream, collector)
    finally:
        stream.close()
        collector.close()


def _follow(stream: EventStream, collector: "Collector") -> None:
    spans = Spans()
    while True:
        item = stream.next()
        if isinstance(item, Event):
            turn = spans.told(item)
            if turn is not None:
                collector.tell(turn)
        elif item is None and stream.is_lost():
            aside("the supervisor is gone; waiting for it to return …")
            stream.reconnect(_PATIENCE_SECONDS)


def _collector(url: str, home: str) -> "Collector":
    with extra("otel", "OpenTelemetry is not installed here"):
        from hermesctl.otel import Collector
    return Collector(url, home)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(Exit.DONE)
