"""The one table of routes: method, path, right, handler. A path that is not in it does not exist.

Every route declares the right that it needs, and `anyone` is a right too: there is no route that is open
because a check was forgotten. docs/gateway.md has the same table, and a test compares the two.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from gateway import clip_download, live_socket, messages_api, queries_api, service_api, sse, tokens_api
from gateway.console_files import ConsoleFiles
from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.openai import chat_api, models_api, responses_api, transcriptions_api
from gateway.openapi import Description
from gateway.parts import Parts
from gateway.tokens import Token

# anyone: without a token. token: any valid one. The others are rights of a token.
Right = Literal["anyone", "token", "watch", "talk", "operate"]
Handler = Callable[[Parts, Exchange], Awaitable[None]]
# The method of a route that is a WebSocket.
WEBSOCKET = "WEBSOCKET"


@dataclass(frozen=True)
class Route:
    """A `{name}` in the path stands for one segment, which may hold an encoded slash (%2F).

    `body` is the JSON that the handler takes, `query` are its parameters: for the description of the API.
    """

    method: str
    path: str
    right: Right
    handler: Handler
    body: type | None = None
    query: tuple[str, ...] = ()

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Returns the parameters of a path that fits."""
        pattern = self.path.split("/")
        if len(pattern) != len(segments):
            return None
        found = {}
        for wanted, given in zip(pattern, segments, strict=True):
            if wanted.startswith("{"):
                found[wanted.strip("{}")] = given
            elif wanted != given:
                return None
        return found


def routes() -> tuple[Route, ...]:
    """Returns the whole table, in the order of docs/gateway.md."""
    description = Description()
    table = (*_of_console(), *_of_clients(description), *_of_tables(), *_of_openai())
    description.describe(table)
    return table


def _of_console() -> tuple[Route, ...]:
    console = ConsoleFiles()
    return (
        Route("GET", "/", "anyone", console.get_index),
        Route("GET", "/console/{file}", "anyone", console.get_file),
        Route("GET", "/service-worker.js", "anyone", console.get_service_worker),
        Route("GET", "/manifest.webmanifest", "anyone", console.get_manifest),
    )


def _of_clients(description: Description) -> tuple[Route, ...]:
    """Health, tokens, messages and events."""
    return (
        Route("GET", "/health", "anyone", service_api.Health().get),
        Route("GET", "/metrics", "operate", service_api.get_metrics),
        Route("POST", "/api/pair", "anyone", tokens_api.post_pair, tokens_api.PairBody),
        Route("POST", "/api/login", "anyone", tokens_api.post_login, tokens_api.LoginBody),
        Route("POST", "/api/logout", "token", tokens_api.post_logout),
        Route("GET", "/api/me", "token", tokens_api.get_me),
        Route("GET", "/api/openapi.json", "token", description.get),
        Route(
            "POST",
            "/api/sessions/{session}/messages",
            "talk",
            messages_api.post_message,
            messages_api.MessageBody,
        ),
        Route(
            "POST",
            "/api/sessions/{session}/interrupt",
            "talk",
            messages_api.post_interrupt,
            messages_api.InterruptBody,
        ),
        Route("POST", "/api/sessions/{session}/fork", "talk", messages_api.post_fork, messages_api.ForkBody),
        Route("GET", "/api/sessions/{session}/events", "watch", sse.get_events, query=("after",)),
        Route(WEBSOCKET, "/api/live", "watch", live_socket.live),
    )


def _of_tables() -> tuple[Route, ...]:
    """Sessions, turns, queues, questions and the service, and what changes them."""
    return (
        Route("GET", "/api/sessions", "watch", queries_api.get_sessions, query=("limit", "after", "words")),
        Route(
            "GET",
            "/api/sessions/{session}/history",
            "watch",
            queries_api.get_history,
            query=("limit", "before"),
        ),
        Route(
            "GET", "/api/turns", "watch", queries_api.get_turns, query=("limit", "after", "session", "state")
        ),
        Route("GET", "/api/turns/{session}/{number}", "watch", queries_api.get_turn),
        Route("GET", "/api/turns/{session}/{number}/why", "watch", queries_api.get_why),
        Route("GET", "/api/turns/{session}/{number}/calls/{call}", "watch", queries_api.get_call),
        Route("POST", "/api/turns/{session}/{number}/retry", "talk", messages_api.post_retry),
        Route("GET", "/api/messages/{message}/why", "watch", queries_api.get_why),
        Route("GET", "/api/messages/{message}/clip", "watch", clip_download.get_clip),
        Route("POST", "/api/messages/{message}/retry", "talk", messages_api.post_retry),
        Route("GET", "/api/sessions/{session}/queue", "watch", queries_api.get_queue),
        Route("DELETE", "/api/sessions/{session}/queue", "talk", messages_api.delete_waiting),
        Route("DELETE", "/api/sessions/{session}/queue/{message}", "talk", messages_api.delete_waiting),
        Route("POST", "/api/sessions/{session}/queue/resume", "talk", messages_api.post_resume),
        Route("GET", "/api/questions", "watch", queries_api.get_questions, query=("limit", "after")),
        Route(
            "POST",
            "/api/questions/{question}/answer",
            "talk",
            messages_api.post_answer,
            messages_api.AnswerBody,
        ),
        Route("GET", "/api/agents", "watch", queries_api.get_agents),
        Route("GET", "/api/status", "operate", queries_api.get_status),
        Route("GET", "/api/workers", "operate", queries_api.get_workers),
        Route("GET", "/api/services", "operate", queries_api.get_services),
        Route("POST", "/api/drain", "operate", messages_api.post_drain),
        Route("POST", "/api/undrain", "operate", messages_api.post_undrain),
        Route("POST", "/api/scale", "operate", messages_api.post_scale, messages_api.ScaleBody),
    )


def _of_openai() -> tuple[Route, ...]:
    return (
        Route("GET", "/v1/models", "watch", models_api.get_models),
        Route("GET", "/v1/models/{model}", "watch", models_api.get_model),
        Route("POST", "/v1/chat/completions", "talk", chat_api.post_chat),
        Route("POST", "/v1/responses", "talk", responses_api.post_response),
        Route("GET", "/v1/responses/{response}", "watch", responses_api.get_response),
        Route("POST", "/v1/responses/{response}/cancel", "talk", responses_api.post_cancel),
        Route("POST", "/v1/audio/transcriptions", "talk", transcriptions_api.post_transcription),
    )


class RouteTable:
    def __init__(self, table: tuple[Route, ...]) -> None:
        self._table = table

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]] | None:
        """Returns the route and the parameters of its path."""
        segments = _segments(raw_path)
        for route in self._table:
            if route.method == method and (parameters := route.match(segments)) is not None:
                return route, parameters
        return None

    def missing(self, raw_path: bytes) -> HttpError:
        """Returns the error for a request that no route takes."""
        segments = _segments(raw_path)
        methods = [route.method for route in self._table if route.match(segments) is not None]
        if not methods:
            return HttpError(404, "there is nothing at this path", "docs/gateway.md lists the paths")
        if methods == [WEBSOCKET]:
            hint = "connect with a WebSocket client"
            return HttpError(405, "this path is a WebSocket", hint, headers=((b"allow", b""),))
        allowed = ", ".join(method for method in methods if method != WEBSOCKET)
        hint = f"it takes {allowed}"
        headers = ((b"allow", allowed.encode()),)
        return HttpError(405, "this path does not take this method", hint, headers=headers)


def may(token: Token, right: Right) -> bool:
    """A token that may talk in its namespace may also watch it."""
    if right == "watch":
        return not token.rights.isdisjoint({"watch", "talk"})
    return right == "token" or right in token.rights


def _segments(raw_path: bytes) -> list[str]:
    """The decoded segments; an encoded slash belongs to its segment."""
    return [unquote(segment) for segment in raw_path.decode("latin-1").split("/")]
