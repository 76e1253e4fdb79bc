"""Routes about the service itself: health and metrics."""

from time import monotonic
from typing import Any

from gateway.errors import Unavailable
from gateway.exchange import Exchange
from gateway.parts import Parts
from ipc.messages import Show, Table

# Everybody may ask for the health; the supervisor is asked this often at most.
_HEALTH_SECONDS = 1.0
_PROMETHEUS = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


class Health:
    """Remembers the last answer for a moment."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[str, Any]] = (503, {})
        self._known_at = -_HEALTH_SECONDS

    async def get(self, parts: Parts, exchange: Exchange) -> None:
        if monotonic() - self._known_at >= _HEALTH_SECONDS:
            self._known = await _look(parts)
            self._known_at = monotonic()
        status, body = self._known
        await exchange.answer(status, body)


async def _look(parts: Parts) -> tuple[int, dict[str, Any]]:
    """Says nothing that a stranger could use: the state in a word, and why it is not well."""
    try:
        page = await parts.supervisor.ask(Show("status"), Table, timeout_seconds=2.0)
    except Unavailable as error:
        return 503, {"status": "unavailable", "reasons": [error.fault]}
    state = str(page.rows[0]["state"])
    if state == "stuck":
        return 503, {"status": state, "reasons": ["the journal cannot be written"]}
    reasons = [] if state == "ready" else [f"the supervisor is {state}"]
    return 200, {"status": "ok" if state == "ready" else state, "reasons": reasons}


async def get_metrics(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    rows = await parts.supervisor.rows(Show("metrics"))
    text = "".join(str(row["text"]) for row in rows) + parts.traffic.text(len(parts.streams))
    await exchange.answer_bytes(200, text.encode(), _PROMETHEUS)
