"""Server-sent events of the OpenAI API: how they are written, and what keeps proxies from holding them."""

from typing import Any

import msgspec

STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
    (b"cache-control", b"no-store, no-transform"),
)
# A comment: clients pass over it.
BEAT = b": \n\n"


def event_bytes(body: dict[str, Any], name: str = "") -> bytes:
    """JSON has no line breaks, so the data is one line."""
    head = f"event: {name}\n" if name else ""
    return b"%sdata: %s\n\n" % (head.encode(), msgspec.json.encode(body))
