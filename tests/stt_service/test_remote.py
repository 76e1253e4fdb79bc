"""The openai engine against a real server on loopback: what it sends, what it makes of answers."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ipc.stt_messages import NotTranscribed, Transcribed
from stt_service.containers import sniff
from stt_service.engines import Clip, Transcript
from stt_service.errors import CannotTranscribe
from stt_service.lanes import Lane
from stt_service.options import Remote
from stt_service.remote_engine import RemoteEngine
from stt_service.sound import Sound
from stt_service.whisper import TranscribeOptions
from tests.services.watching import running
from tests.stt_service.hearer import hearing, spec
from tests.stt_service.sounds import SAID, clip, file_of, silence
from tests.stt_service.wording import errors


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


class Server(ThreadingHTTPServer):
    """Gives one answer to everybody and keeps what it was sent."""

    def __init__(self, status: int, answer: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        # It answers nobody while this is not set.
        self.answers = threading.Event()
        self.answers.set()
        self.will_answer(status, answer)

    def will_answer(self, status: int, answer: Any) -> None:
        """From now on; earlier requests are forgotten."""
        self.status = status
        self.body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.requests: list[tuple[str, str, bytes]] = []

    @property
    def remote(self) -> dict[str, str]:
        address = f"http://127.0.0.1:{self.server_address[1]}/v1"
        return {"base_url": address, "model": "whisper-1", "api_key": "a-key"}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        self.server.answers.wait()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        if self.server.body.startswith(b"\x1f\x8b"):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


@contextmanager
def server(status: int, answer: Any) -> Iterator[Server]:
    with Server(status, answer) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


def test_a_clip_goes_to_the_server_as_it_came_and_silence_never_does() -> None:
    async def story(server: Server) -> None:
        async with hearing(engines=["openai"], remote=server.remote, prompt="Names: Ada.") as hearer:
            answer = await hearer.hear(clip("young_man"), language="en", hotwords="Dashwood")
            assert isinstance(answer, Transcribed)
            assert (answer.text, answer.language) == ("from far away", "en")
            assert isinstance(await hearer.hear(file_of(silence(3), "ogg")), NotTranscribed)
            ((path, key, body),) = server.requests
            assert (path, key) == ("/v1/audio/transcriptions", "Bearer a-key")
            for part in (
                b"whisper-1",
                b'"clip.ogg"',
                b"Dashwood Names: Ada.",
                clip("young_man").read_bytes(),
            ):
                assert part in body

    with server(200, {"text": " from far away"}) as made:
        run(story(made))


def _bomb() -> bytes:
    """Not compressed before it is needed: every test process imports this module."""
    return gzip.compress(bytes(64 * 1024 * 1024))


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Server, Callable[[], Transcribed | NotTranscribed]]]:
    """A server and what becomes of a clip that is sent to it, by one service for all its answers."""
    with server(200, {}) as made, asyncio.Runner() as runner:
        opened = hearing(engines=["openai"], remote=made.remote)
        hearer = runner.run(opened.__aenter__())
        yield made, lambda: runner.run(hearer.hear(clip("young_man")))
        runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize(
    ("status", "answer", "reason", "again"),
    [
        (401, {}, "the transcription server refused the key", False),
        (403, {}, "the transcription server refused the key", False),
        (429, {}, "the transcription server answered 429", True),
        (200, b" " * (1024**2 + 1), "the transcription server's answer is too long", False),
        (413, {}, "the clip is too large for the transcription server", False),
        (503, {}, "the transcription server answered 503", True),
        (200, {"words": "?"}, "the transcription server answered what is no transcript", False),
        (307, {"text": "moved"}, "the transcription server answered 307", False),
        (200, b"[" * 100_000, "the transcription server answered what is no transcript", False),
        (200, _bomb, "the transcription server answered what is no transcript", False),
        (200, {"text": "[MUSIC]"}, "nothing was understood: no words were found in the clip", False),
    ],
)
def test_what_a_server_answers_instead_is_told_by_name(
    asked: tuple[Server, Callable[[], Transcribed | NotTranscribed]],
    status: int,
    answer: Any,
    reason: str,
    again: bool,
) -> None:
    made, ask = asked
    made.will_answer(status, answer() if callable(answer) else answer)
    became = ask()
    assert isinstance(became, NotTranscribed)
    assert (became.reason, became.again) == (reason, again)
    assert len(made.requests) == 1, "it was asked once, and nobody else"


def test_the_next_engine_hears_what_the_first_cannot() -> None:
    nobody = {"base_url": "http://127.0.0.1:9/v1", "model": "whisper-1"}

    async def story() -> None:
        async with hearing(engines=["openai", "faster-whisper"], remote=nobody) as hearer:
            assert hearer.watched.row()["detail"] == "whisper-1 at 127.0.0.1, then tiny.en"
            answer = await hearer.hear(clip("young_man"))
            assert isinstance(answer, Transcribed)
            assert errors(SAID["young_man"], answer.text) <= 1

    run(story())


def test_an_engine_that_cannot_be_opened_is_named_and_the_other_serves() -> None:
    async def story(server: Server) -> None:
        wanted = spec(engines=["faster-whisper", "openai"], remote=server.remote, models="/nowhere")
        async with running(wanted) as watched:
            ready = await watched.seen("ready")
            assert ready.detail == "whisper-1 at 127.0.0.1; there are no weights of tiny.en"
            assert ready.hint == "hermesctl models pull tiny.en"

    with server(200, {"text": "yes"}) as made:
        run(story(made))


def test_no_server_and_no_weights_is_a_failure() -> None:
    async def story() -> None:
        async with running(spec(engines=["openai"])) as watched:
            failed = await watched.seen("failed")
            assert failed.detail.startswith("the openai engine has no server")

    run(story())


def transcribed(made: Server, options: TranscribeOptions, **remote: str) -> Transcript:
    """The transcript by an engine in this process; `remote` is other than the server's own."""

    async def act() -> Transcript:
        engine = RemoteEngine(Remote(**made.remote | remote))
        sent = Clip(b"OggS", sniff(b"OggS"), Sound(b""))
        try:
            return await engine.transcribe(sent, [], options, Lane("test"), lambda *_: None)
        finally:
            await engine._client.aclose()

    return asyncio.run(act())


def test_a_server_decides_the_language_and_its_loops_are_cut() -> None:
    with server(200, {"text": "[M] no no no no no no", "language": "fr"}) as made:
        assert transcribed(made, TranscribeOptions("de")) == Transcript("no", "fr")
        made.will_answer(200, {"text": "no"})
        assert transcribed(made, TranscribeOptions("de")) == Transcript("no", "de")


def test_a_server_without_a_key_gets_none_and_the_end_of_its_address_does_not_matter() -> None:
    with server(200, {"text": "yes"}) as made:
        transcribed(made, TranscribeOptions(), base_url=f"{made.remote['base_url']}/", api_key="")
        ((path, key, body),) = made.requests
        assert path == "/v1/audio/transcriptions"
        assert not key
        assert b"language" not in body
        assert b"prompt" not in body


def test_a_clip_can_be_sent_again_when_its_server_was_not_reached() -> None:
    with server(200, {"text": "yes"}) as made, pytest.raises(CannotTranscribe) as refused:
        transcribed(made, TranscribeOptions(), base_url="http://127.0.0.1:9/v1")
    assert (refused.value.reason, refused.value.again) == (
        "the transcription server cannot be reached: ConnectError",
        True,
    )
