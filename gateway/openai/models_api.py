"""`GET /v1/models`: the agents, as models."""

from typing import Any

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.parts import Parts
from ipc.messages import Show


async def get_models(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    data = [_model(name) for name in await agents(parts)]
    await exchange.answer(200, {"object": "list", "data": data})


async def get_model(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    name, known = exchange.parameters["model"], await agents(parts)
    if name not in known:
        raise HttpError(404, *_unknown(name, known))
    await exchange.answer(200, _model(name))


async def agents(parts: Parts) -> list[str]:
    return [str(row["agent"]) for row in await parts.supervisor.rows(Show("agents"))]


async def check_model(parts: Parts, name: str) -> None:
    """HttpError for the name of no agent: the client gets it before anything is sent anywhere."""
    known = await agents(parts)
    if name not in known:
        raise HttpError(400, *_unknown(name, known))


def _unknown(name: str, known: list[str]) -> tuple[str, str]:
    return f"there is no model {name[:100]!r}", f"a model is an agent of this service: {', '.join(known)}"


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "hermes-supervisor"}
