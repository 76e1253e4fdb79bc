"""Errors in the shape of the OpenAI API: clients show `message` and look at nothing else.

So the fault and the hint are both in it. `code` is the same word as on the other routes.
"""

from typing import Any

from gateway.errors import HttpError
from gateway.namespace import Namespace

PREFIX = "/v1/"
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# To send the message of a failed turn again is the choice of a person, not of a library.
_NO_RETRY = ((b"x-should-retry", b"false"),)


def error_body(error: HttpError, namespace: Namespace) -> dict[str, Any]:
    fault, hint = map(namespace.sentence, (error.fault, error.hint))
    kind = "server_error" if error.status >= 500 else _TYPES.get(error.status, "invalid_request_error")
    shown = {"message": f"{fault}; {hint}", "type": kind, "param": None, "code": error.code, "hint": hint}
    return {"error": shown}


class TurnError(HttpError):
    """The turn has ended without an answer."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(422, fault, hint, headers=_NO_RETRY)
