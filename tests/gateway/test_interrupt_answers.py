"""The answer to an interrupt: the proof, or that there is none. Its reader of the session is closed."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.messages_api import post_interrupt
from gateway.parts import Parts
from gateway.session_feed import SessionFeeds
from gateway.tokens import Token
from ipc.messages import Done, Event, Subscribe
from tests.gateway.test_feed_upkeep import HEAD, Supervisor, play

PROOF = {"all_dead": True, "processes": 2}


def interrupted(folder: Path, say: Callable[[int], Event]) -> dict[str, Any]:
    """The answer when the supervisor stops two turns, with the event that comes before its answer."""
    shown: list[bytes] = []

    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        async def ask(*request: Any) -> Done:
            [(number, _)] = supervisor.of(Subscribe)
            for seq in (HEAD + 1, HEAD + 2):
                supervisor.send(number, say(seq))
            return Done(("demo/1", "demo/2"))

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: dict[str, Any]) -> None:
            shown.append(message.get("body", b""))

        exchange = Exchange({"type": "http", "headers": [], "query_string": b""}, receive, send)
        exchange.token = Token("t_1", "phone", "", frozenset({"talk"}))
        exchange.parameters = {"session": "demo"}
        parts = SimpleNamespace(feeds=feeds, supervisor=SimpleNamespace(ask=ask))
        try:
            await asyncio.wait_for(post_interrupt(cast(Parts, parts), exchange), 5)
        finally:
            assert not feeds._feeds["demo"].readers

    play(folder, scene)
    found: dict[str, Any] = json.loads(b"".join(shown))
    return found


def test_the_proof_is_that_of_the_first_turn_once_all_have_ended(tmp_path: Path) -> None:
    def say(seq: int) -> Event:
        fields = {"turn": f"demo/{seq - HEAD}", "killed": PROOF if seq == HEAD + 1 else None}
        return Event(seq, "demo", "turn.interrupted", 1.0, fields)

    shown = interrupted(tmp_path, say)
    assert (shown["turn"], shown["state"], shown["killed"]) == ("demo/1", "interrupted", PROOF)


def test_processes_that_outlive_the_kill_are_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(HttpError, match="demo/1 was killed, but some of its processes") as error:
        interrupted(tmp_path, lambda seq: Event(seq, "demo", "attempt.stuck", 1.0, {"turn": "demo/1"}))
    assert error.value.status == 503
