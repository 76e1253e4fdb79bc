"""Routes that read: sessions, turns, queues, questions, workers, services, the history of a message."""

from typing import Any, get_args

import msgspec

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.parts import Parts
from ipc.bounds import NUMBER_MAX
from ipc.messages import Queue, Show, Table, TurnState
from ipc.paging import place

_ROWS = 100
_ROWS_MAX = 1_000
# Pages of the supervisor that are joined to one: a page that looks for an owner's rows, or for words, ends
# after a few milliseconds, with few rows or none. The client asks for the rest.
_PAGES_MAX = 20
_PLACE_CHARACTERS_MAX = 4_096


async def get_sessions(parts: Parts, exchange: Exchange) -> None:
    """The sessions, those with news first."""
    limit, after = _page(exchange, "words")
    words = exchange.query("limit", "after", "words").get("words", "")
    request = Show("sessions", limit=limit, after=after, words=words)
    await _answer_page(parts, exchange, "sessions", request)


async def get_turns(parts: Parts, exchange: Exchange) -> None:
    """The turns, newest first."""
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
    """The open questions, the longest wait first."""
    limit, after = _page(exchange)
    await _answer_page(parts, exchange, "questions", Show("questions", limit=limit, after=after))


async def get_history(parts: Parts, exchange: Exchange) -> None:
    """The turns of a session with their content, newest first, before a turn's number or a page's end."""
    limit, before = _page(exchange, name="before")
    session = exchange.namespace.inward(exchange.parameters["session"])
    if before.isascii() and before.isdigit() and len(before) <= 18:
        before = place(int(before), NUMBER_MAX)
    page = await parts.supervisor.ask(Show("history", session=session, limit=limit, after=before), Table)
    if not page.rows and not before:
        await parts.feeds.require(session)
    rows = [exchange.namespace.row(row) for row in page.rows]
    await exchange.answer(200, {"turns": rows, "more": page.more})


async def get_call(parts: Parts, exchange: Exchange) -> None:
    """Arguments and result of a tool call, whole, in each attempt that made it, the latest first."""
    exchange.query()
    turn, call = turn_of(exchange), exchange.parameters["call"]
    rows = await parts.supervisor.rows(Show("output", id=turn, call=call))
    if not rows:
        fault = f"turn {exchange.namespace.outward(turn)} has no tool call {call}"
        raise HttpError(
            404, fault, "GET /api/sessions/{session}/history lists the calls; old ones are pruned"
        )
    await exchange.answer(200, {"attempts": rows})


async def get_agents(parts: Parts, exchange: Exchange) -> None:
    """The names that a message may give as its agent; where they run is no client's business."""
    exchange.query()
    rows = await parts.supervisor.rows(Show("agents"))
    await exchange.answer(200, {"agents": [{"agent": row["agent"], "kind": row["kind"]} for row in rows]})


async def get_turn(parts: Parts, exchange: Exchange) -> None:
    """The turn itself, without the events that led to it."""
    row = await _first(parts, exchange, turn_of(exchange))
    await exchange.answer(200, exchange.namespace.row(row))


async def get_why(parts: Parts, exchange: Exchange) -> None:
    """The whole history of a turn or of a message."""
    if "message" in exchange.parameters:
        rows = await session_of_message(parts, exchange, exchange.parameters["message"])
    else:
        rows = await _story(parts, exchange, turn_of(exchange))
    await exchange.answer(200, {"rows": [exchange.namespace.row(row) for row in rows]})


async def get_queue(parts: Parts, exchange: Exchange) -> None:
    """The messages that wait in a session, in order."""
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
    await exchange.answer(200, {"workers": [exchange.namespace.seat(row) for row in rows]})


async def get_services(parts: Parts, exchange: Exchange) -> None:
    """The services."""
    exchange.query()
    rows = await parts.supervisor.rows(Show("services"))
    await exchange.answer(200, {"services": rows})


async def get_status(parts: Parts, exchange: Exchange) -> None:
    """The row of `hermesctl status --json`."""
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


async def first_of_message(parts: Parts, exchange: Exchange, message: str) -> dict[str, Any]:
    """Returns the present state of a message of the token's namespace."""
    if "/" in message:
        raise _unknown(exchange, message)
    return await _first(parts, exchange, message)


async def _story(parts: Parts, exchange: Exchange, id: str) -> list[dict[str, Any]]:
    exchange.query()
    rows = await parts.supervisor.rows(Show("story", id=id))
    return _owned(exchange, id, rows)


async def _first(parts: Parts, exchange: Exchange, id: str) -> dict[str, Any]:
    """Returns the row before the events: the state of the turn or message now."""
    exchange.query()
    page = await parts.supervisor.ask(Show("story", id=id, limit=1), Table)
    return _owned(exchange, id, list(page.rows))[0]


def _owned(exchange: Exchange, id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not rows or not exchange.namespace.owns(rows[0].get("session")):
        raise _unknown(exchange, id)
    return rows


def _unknown(exchange: Exchange, id: str) -> HttpError:
    fault = f"there is no turn or message {exchange.namespace.outward(id)}"
    return HttpError(404, fault, "GET /api/turns lists the turns; old ones are pruned")


def _page(exchange: Exchange, *further: str, name: str = "after") -> tuple[int, str]:
    """The number of rows that is wanted, and the place where they begin."""
    query = exchange.query("limit", name, *further)
    limit = exchange.number("limit", name, *further)
    if limit is not None and not 1 <= limit <= _ROWS_MAX:
        raise HttpError(400, f"limit is {limit}", f"it is between 1 and {_ROWS_MAX:,}")
    begin = query.get(name, "")
    if len(begin) > _PLACE_CHARACTERS_MAX:
        raise HttpError(400, f"{name} is no place of a page", "send the `more` of the previous page")
    return limit or _ROWS, begin


async def _answer_page(parts: Parts, exchange: Exchange, name: str, request: Show) -> None:
    """The next rows of the namespace; `more`, if not empty, is the `after` of the next page."""
    namespace, wanted = exchange.namespace, request.limit
    request = msgspec.structs.replace(request, prefix=namespace.prefix)
    rows: list[dict[str, Any]] = []
    for _ in range(_PAGES_MAX):
        page = await parts.supervisor.ask(request, Table)
        rows += map(namespace.row, page.rows)
        if not page.more or len(rows) >= wanted:
            break
        request = msgspec.structs.replace(request, after=page.more, limit=wanted - len(rows))
    await exchange.answer(200, {name: rows, "more": page.more})
