"""The ASGI application: checks Host, Origin and credentials, then finds the route and runs its handler.

Raw ASGI, no framework: every request takes the same few steps in the same order, and a stream costs no more
than the server below does. An exception of a handler costs its request, not the others.
"""

import sys
import traceback
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected

from gateway.credentials import refuse_in_url
from gateway.errors import HttpError
from gateway.exchange import Exchange, Receive, Scope, Send
from gateway.namespace import Namespace
from gateway.openai import openai_errors
from gateway.origin_check import OriginCheck
from gateway.parts import Parts
from gateway.routes import WEBSOCKET, RouteTable, may


class Application:
    def __init__(self, parts: Parts, table: RouteTable, origin_check: OriginCheck) -> None:
        self._parts = parts
        self._table = table
        self._origin_check = origin_check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self._serve(exchange)
        except HttpError as error:
            await self._refuse(exchange, error)
        except ClientDisconnected:
            return
        except Exception as error:
            # The frames only: an exception's text may hold what a person wrote.
            frames = "".join(traceback.format_tb(error.__traceback__))
            print(f"gateway: {type(error).__name__}\n{frames}", file=sys.stderr, flush=True)
            hint = "look at logs/gateway.log; this is a fault of the gateway"
            await self._refuse(exchange, HttpError(500, "the gateway failed at this request", hint))

    async def _serve(self, exchange: Exchange) -> None:
        scope = exchange.scope
        self._origin_check.check(exchange)
        refuse_in_url(exchange)
        method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        found = self._table.find(method, scope["raw_path"])
        if found is None or found[0].right != "anyone":
            exchange.token = self._parts.credentials.check(exchange)
        if found is None:
            raise self._table.missing(scope["raw_path"])
        route, exchange.parameters = found
        if exchange.token is not None and not may(exchange.token, route.right):
            hint = f"`hermesctl tokens add NAME --rights {route.right}` makes a token that may"
            raise HttpError(403, f"this token has no right to {route.right}", hint)
        await route.handler(self._parts, exchange)
        self._parts.traffic.answered(exchange.status)

    async def _refuse(self, exchange: Exchange, error: HttpError) -> None:
        self._parts.traffic.answered(error.status)
        if not exchange.is_begun:
            is_openai = exchange.scope["path"].startswith(openai_errors.PREFIX)
            shape = openai_errors.error_body if is_openai else _error_body
            await exchange.answer(error.status, shape(error, exchange.namespace), error.headers)


def _error_body(error: HttpError, namespace: Namespace) -> dict[str, Any]:
    fault, hint = map(namespace.sentence, (error.fault, error.hint))
    return {"error": {"message": fault, "hint": hint, "code": error.code}}
