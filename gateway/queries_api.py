"""Routes that read: sessions, turns, queues, questions, workers, services, the history of a message."""

from typing import Any, get_args

import msgspec

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.parts import Parts
from ipc.messages import Queue, Show, Table, TurnState

_ROWS = 100
_ROWS_MAX = 1_000
# Pages of a table that are looked through for rows of one owner; the client asks for the rest.
_PAGES_MAX = 20
_PLACE_CHARACTERS_MAX = 4_096


async def get_sessions(parts: Parts, exchange: Exchange) -> None:
    limit, after = _page(exchange)
    await _answer_page(parts, exchange, "sessions", Show("sessions", limit=limit, after=after))


async def get_turns(parts: Parts, exchange: Exchange) -> None:
    limit, after = _page(exchange, "session", "state")
    query = exchange.query("limit", "after", "session", "state")
    session = query.get("session")
    try:
        state = msgspec.convert(query.get("state"), TurnState | None)
    except msgspec.ValidationError:
        hint = f"the states are {', '.join(get_args(TurnState))}"
        raise HttpError(400, f"{query['state'][:40]!r} is no state of a turn", hint) from None
    inward = None if session is None else exchange.namespace.inward(session)
    request = Show("turns", session=inward, state=state, limit=limit, after=after)
    await _answer_page(parts, exchange, "turns", request)


async def get_questions(parts: Parts, exchange: Exchange) -> None:
    limit, after = _page(exchange)
    await _answer_page(parts, exchange, "questions", Show("questions", limit=limit, after=after))


async def get_turn(parts: Parts, exchange: Exchange) -> None:
    """The turn itself, without the events that led to it."""
    rows = await _story(parts, exchange, turn_of(exchange))
    await exchange.answer(200, exchange.namespace.row(rows[0]))


async def get_why(parts: Parts, exchange: Exchange) -> None:
    """The whole history of a turn or of a message."""
    if "message" in exchange.parameters:
        rows = await session_of_message(parts, exchange, exchange.parameters["message"])
    else:
        rows = await _story(parts, exchange, turn_of(exchange))
    await exchange.answer(200, {"rows": [exchange.namespace.row(row) for row in rows]})


async def get_queue(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    session = exchange.namespace.inward(exchange.parameters["session"])
    rows = await parts.supervisor.rows(Queue(session))
    if not rows:
        await parts.feeds.require(session)
    await exchange.answer(200, {"messages": [exchange.namespace.row(row) for row in rows]})


async def get_workers(parts: Parts, exchange: Exchange) -> None:
    """All seats; of sessions that are not the token's own only that there are some."""
    exchange.query()
    rows = await parts.supervisor.rows(Show("workers"))
    await exchange.answer(200, {"workers": [_veiled(exchange, row) for row in rows]})


async def get_services(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    rows = await parts.supervisor.rows(Show("services"))
    await exchange.answer(200, {"services": rows})


async def get_status(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    (row,) = await parts.supervisor.rows(Show("status"))
    await exchange.answer(200, row)


def turn_of(exchange: Exchange) -> str:
    """The id of the turn in the path; a turn is SESSION/N, in two segments."""
    turn = f"{exchange.parameters['session']}/{exchange.parameters['number']}"
    return exchange.namespace.inward(turn)


async def session_of_message(parts: Parts, exchange: Exchange, message: str) -> list[dict[str, Any]]:
    """Returns the history of a message of the token's namespace; others do not exist for it."""
    if "/" in message:
        raise _unknown(exchange, message)
    return await _story(parts, exchange, message)


async def _story(parts: Parts, exchange: Exchange, id: str) -> list[dict[str, Any]]:
    exchange.query()
    rows = await parts.supervisor.rows(Show("story", id=id))
    if not rows or not exchange.namespace.owns(rows[0].get("session")):
        raise _unknown(exchange, id)
    return rows


def _unknown(exchange: Exchange, id: str) -> HttpError:
    fault = f"there is no turn or message {exchange.namespace.outward(id)}"
    return HttpError(404, fault, "GET /api/turns lists the turns; old ones are pruned")


def _page(exchange: Exchange, *further: str) -> tuple[int, str]:
    query = exchange.query("limit", "after", *further)
    limit = exchange.number("limit", "after", *further)
    if limit is not None and not 1 <= limit <= _ROWS_MAX:
        raise HttpError(400, f"limit is {limit}", f"it is between 1 and {_ROWS_MAX:,}")
    after = query.get("after", "")
    if len(after) > _PLACE_CHARACTERS_MAX:
        raise HttpError(400, "after is no place of a page", "send the `more` of the previous page")
    return limit or _ROWS, after


async def _answer_page(parts: Parts, exchange: Exchange, name: str, request: Show) -> None:
    """The next rows of the namespace; `more`, if not empty, is the `after` of the next page."""
    namespace, wanted = exchange.namespace, request.limit
    rows: list[dict[str, Any]] = []
    for _ in range(_PAGES_MAX):
        page = await parts.supervisor.ask(request, Table)
        rows += [namespace.row(row) for row in page.rows if namespace.owns(row.get("session"))]
        if not page.more or len(rows) >= wanted:
            break
        request = msgspec.structs.replace(request, after=page.more, limit=wanted - len(rows))
    await exchange.answer(200, {name: rows, "more": page.more})


def _veiled(exchange: Exchange, row: dict[str, Any]) -> dict[str, Any]:
    if row.get("session") is None or exchange.namespace.owns(row["session"]):
        return exchange.namespace.row(row)
    return row | {"session": None, "turn": None, "words": ""}
