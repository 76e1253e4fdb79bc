"""Clips on their way in: bounds of a form, the order on the disk, and which clip stays without an answer."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import audio_upload
from gateway.errors import HttpError, Unavailable
from gateway.exchange import Exchange
from gateway.limiter import UPLOADS_PER_TOKEN_MAX, Limiter
from gateway.messages_api import post_message
from gateway.openai.transcriptions_api import post_transcription
from gateway.parts import Parts
from gateway.tokens import Token
from ipc.messages import Accepted

AUDIO = b"OggS and more"
Handler = Callable[[Parts, Exchange], Coroutine[Any, Any, None]]


def form(**parts: bytes) -> Exchange:
    """A request with these parts, in three pieces."""
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value)
        for name, value in parts.items()
    )
    body += b"--b--\r\n"
    pieces = [body[:20], body[20:50], body[50:]]
    messages = [
        {"type": "http.request", "body": piece, "more_body": piece is not pieces[-1]} for piece in pieces
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None: ...

    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    exchange = Exchange({"type": "http", "headers": headers, "query_string": b""}, receive, send)
    exchange.token = Token("t_1", "phone", "", frozenset({"talk"}))
    exchange.parameters = {"session": "demo"}
    return exchange


def stored(folder: Path, **parts: bytes) -> tuple[str, dict[str, str]]:
    return asyncio.run(audio_upload.store(form(**parts), folder))


def test_a_form_has_16_parts_at_most_and_short_fields(tmp_path: Path) -> None:
    fields = {f"f{number}": b"x" for number in range(15)}
    name, found = stored(tmp_path, audio=AUDIO, **fields)
    assert (len(found), (tmp_path / name).read_bytes()) == (15, AUDIO)
    with pytest.raises(HttpError, match="more than 16 parts"):
        stored(tmp_path, audio=AUDIO, **fields, f15=b"x")
    assert stored(tmp_path, audio=AUDIO, long=b"x" * 65_536)[1] == {"long": "x" * 65_536}
    with pytest.raises(HttpError, match="'long' is too long") as refused:
        stored(tmp_path, audio=AUDIO, long=b"x" * 65_537)
    assert refused.value.status == 413
    assert len(list(tmp_path.iterdir())) == 2


def test_a_clip_is_on_the_disk_before_it_has_its_name_and_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bytes]] = []

    def fsync(descriptor: int) -> None:
        (only,) = tmp_path.iterdir()
        is_folder = os.path.samefile(f"/proc/self/fd/{descriptor}", tmp_path)
        synced.append((is_folder, only.read_bytes()))
        assert only.name.startswith(".") == (not is_folder)

    monkeypatch.setattr(os, "fsync", fsync)
    stored(tmp_path, audio=AUDIO)
    assert synced == [(False, AUDIO), (True, AUDIO)]


def parts_with(folder: Path, answer: Any) -> Parts:
    """A supervisor that gives this answer, or fails so."""

    async def ask(*request: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    supervisor = SimpleNamespace(ask=ask)
    return cast(Parts, SimpleNamespace(clips=folder, supervisor=supervisor, limiter=Limiter(monotonic)))


ROUTES = [(post_message, "audio"), (post_transcription, "file")]


@pytest.mark.parametrize(("handler", "part"), ROUTES)
def test_a_clip_whose_request_was_not_answered_is_kept_and_a_refused_one_is_not(
    tmp_path: Path, handler: Handler, part: str
) -> None:
    """The supervisor may have accepted it; else it is removed as a stray one."""
    for error, kept in ((Unavailable(), 1), (HttpError(429, "it is full", "wait"), 1)):
        with pytest.raises(HttpError, match=error.fault):
            asyncio.run(handler(parts_with(tmp_path, error), form(**{part: AUDIO})))
        assert len(list(tmp_path.iterdir())) == kept


def test_the_clip_of_a_message_that_was_sent_before_is_removed(tmp_path: Path) -> None:
    for again, kept in ((False, 1), (True, 1)):
        accepted = Accepted("m_1", 1, again=again)
        asyncio.run(post_message(parts_with(tmp_path, accepted), form(audio=AUDIO)))
        assert len(list(tmp_path.iterdir())) == kept


@pytest.mark.parametrize(("handler", "part"), ROUTES)
def test_a_token_uploads_few_clips_at_a_time(tmp_path: Path, handler: Handler, part: str) -> None:
    parts = parts_with(tmp_path, Unavailable())
    with ExitStack() as uploads:
        for _ in range(UPLOADS_PER_TOKEN_MAX):
            uploads.enter_context(parts.limiter.uploads.one("t_1"))
        with pytest.raises(HttpError, match="uploads 4 clips already"):
            asyncio.run(handler(parts, form(**{part: AUDIO})))
    assert list(tmp_path.iterdir()) == []


def test_a_message_has_one_key(tmp_path: Path) -> None:
    exchange = form(audio=AUDIO)
    exchange.scope["headers"] += [(b"idempotency-key", b"one"), (b"idempotency-key", b"two")]
    with pytest.raises(HttpError, match="an Idempotency-Key has"):
        asyncio.run(post_message(parts_with(tmp_path, Unavailable()), exchange))
