"""Routes about tokens: the one in use, pairing, and the login of browsers."""

from typing import Any

import msgspec

from gateway import browser_cookie
from gateway.credentials import address, wrong_code
from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.parts import Parts
from gateway.tokens import Token


class PairBody(msgspec.Struct, forbid_unknown_fields=True):
    code: str


class LoginBody(msgspec.Struct, forbid_unknown_fields=True):
    """Either of the two."""

    code: str | None = None
    token: str | None = None


async def get_me(parts: Parts, exchange: Exchange) -> None:
    """The token in use."""
    exchange.query()
    assert exchange.token is not None
    await exchange.answer(200, _shown(exchange.token))


async def post_pair(parts: Parts, exchange: Exchange) -> None:
    """Exchanges a pairing code for a token. Wrong codes count as wrong tokens do."""
    exchange.query()
    wanted = await exchange.json(PairBody)
    redeemed = parts.tokens.redeem(wanted.code[:100])
    if redeemed is None:
        parts.limiter.failure(address(exchange))
        raise wrong_code()
    token, secret = redeemed
    await exchange.answer(200, {"token": secret, **_shown(token)})


async def post_login(parts: Parts, exchange: Exchange) -> None:
    """Gives a browser a token of its own in a cookie, which no script can read, for a code or a token."""
    exchange.query()
    wanted = await exchange.json(LoginBody)
    if (wanted.code is None) == (wanted.token is None):
        hint = 'send {"code": "ABCD-EFGH"} or {"token": "hermes_…"}'
        raise HttpError(400, "a login has a code or a token", hint)
    token, secret = parts.credentials.log_in(exchange, wanted.code, wanted.token)
    parts.streams.end_revoked()
    await exchange.answer(200, _shown(token), (browser_cookie.setting(exchange, secret),))


async def post_logout(parts: Parts, exchange: Exchange) -> None:
    """Ends the token of the browser and removes its cookie."""
    exchange.query()
    assert exchange.token is not None
    if not browser_cookie.values(exchange):
        hint = f"`hermesctl tokens revoke {exchange.token.id}` ends the token of a program"
        raise HttpError(400, "only a browser logs out", hint)
    parts.tokens.revoke(exchange.token.id)
    parts.streams.end_revoked()
    await exchange.answer(200, {}, (browser_cookie.removing(exchange),))


def _shown(token: Token) -> dict[str, Any]:
    return {"id": token.id, "name": token.name, "owner": token.owner, "rights": sorted(token.rights)}
