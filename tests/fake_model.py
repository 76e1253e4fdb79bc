"""A fake OpenAI-compatible model server over real HTTP, in its own process; it does exactly what a test asks.

`python -m tests.fake_model` prints its port on loopback and serves `/v1/models`, `/v1/chat/completions` and
`/v1/messages` of Anthropic (tests/fake_model_messages.py), streamed and not. In a test:

    with FakeModel() as fake:
        fake.set_mode("slow", interval=0.05, count=200)
        ...                                     # point [model] base_url at fake.base_url
        fake.wait(lambda requests: requests[0].tokens >= 3)
        assert fake.requests()[0].disconnected

How a request is answered is chosen by, in this order:
  1. a directive in what the person said: `[[slow interval=0.05 count=200]]` (values are quoted as in a shell)
  2. the model's name: `fake:slow?interval=0.05&count=200`
  3. `set_mode`
An outage and a return are `set_mode("500", status=503)` and `set_mode("normal")`; a server that is not there
at all is a port that a test keeps, until it starts `FakeModel(port)`.
"What the person said" is the last user message that neither follows a tool result (that is a steer) nor
begins with `[note:` (that is the worker talking to its model), so parallel sessions can differ, and a second
attempt at a turn is answered like its first. A record that an ACP agent is given before the message is no
part of it.

mode      what it answers; options (default)
normal    `You said: …`, a token a word; text (instead of it), usage (on | off | tokens of input)
recite    how many messages arrived, their roles, and the first thing the person ever said
slow      `word0 word1 …`, a pause before each; interval (0.05), count (100), text (instead of the words)
stall     headers and a few tokens, then silence; tokens (3)
silent    takes the request and sends nothing, not even headers
drop      a few tokens, then the connection is cut; tokens (3)
goon      words that go on behind those already said; count (100), interval (0.02), drop: cut off before it
429       too many requests; retry_after (0), code (rate_limit_exceeded)
500       the server's own fault; status (500)
400       a refused request; code (invalid_request_error), message
401       a wrong key; status (401), message
404       not found: a web page, or with kind=model the API's own "no such model"; kind (page), message
html      a web page with status 200
garbage   bytes that are no answer; kind (json | shape | bytes | empty | unfinished)
huge      large tokens without end; characters (4096), count; kind=line: one endless line, 64 KiB a token
reasoning thinks, then answers like normal; thoughts (20), interval between them (0), field
          (reasoning_content | reasoning | thinking | parts: of the content)
empty     no word and no call; usage
refusal   declines, in the field `refusal`; text
tools     calls tools and, after their results, says `text`; name and arguments (JSON) of one call, or
          calls (JSON): a list of {name, arguments}, or a list of such lists, one a round; text (Done.);
          quote (off | on: the text quotes their results, and what else it was given since);
          id, which its calls' ids begin with (another for every request); before, words that come with
          the calls; pieces (2) that arguments come in, interval between them (0); when: words of the person
          without which it answers like normal, unless: words since then with which it does

Options of every streamed mode: finish, the reason that ends it; thoughts, as in reasoning; context, the
characters beyond which a request is refused for its length, and overflow, which server's way of refusing
(openai | llama.cpp | vllm | ollama | tgi | gemini | rate | 413 | stream).

and, to mistreat its clients (tests/fake_model_cruelty.py):
redirect  elsewhere; to (an address), status (307)
bomb      packed zeroes; mebibytes (4096), encoding (gzip | deflate | charset=NAME), status (200)
endless   kind: line, event, carriage, error, header, silence, after (the end of an answer)
usage     an answer that cost tokens (9223372036854775808), as JSON
nested    an event of JSON of depth (100000)
halves    half characters and NUL; kind: text, call
flood     tool calls; kind: calls (10000), at once, arguments (without end), names (of a megabyte)
content   events of the test's own; events (base64 of a JSON list)

With `times=N` the first N requests (since `set_mode`, or with the same words of the person) are answered in
the mode and the rest as normal.
"""

import argparse
import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import uvicorn

from tests.fake_model_exchange import Record
from tests.fake_model_server import Server

__all__ = ["FakeModel", "Record"]


class FakeModel:
    """The server as a test holds it: its own process, which ends with the `with` block or with the test."""

    def __init__(self, port: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fake_model", "--tethered", "--port", str(port)],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        found = self._process.stdout.readline().strip()
        assert found, "the fake model server did not start"
        self.base_url = f"http://127.0.0.1:{found}/v1"
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{found}/fake", trust_env=False, timeout=30)

    def __enter__(self) -> "FakeModel":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def set_mode(self, mode: str, **options: Any) -> None:
        """How requests without a directive are answered from now on; counts of `times` begin anew."""
        self._http.post("/mode", json={"mode": mode, "options": options}).raise_for_status()

    def reset(self) -> None:
        """Back to the normal mode, with all requests forgotten."""
        self._http.post("/reset").raise_for_status()

    def requests(self) -> list[Record]:
        return self._look({})[1]

    def wait(self, condition: Callable[[list[Record]], bool], timeout_seconds: float = 20) -> list[Record]:
        """The requests, once `condition` holds for them; AssertionError when it does not in time."""
        deadline = time.monotonic() + timeout_seconds
        version, requests = self._look({})
        while not condition(requests):
            assert time.monotonic() < deadline, f"the requests never became as awaited: {requests}"
            version, requests = self._look({"after": version, "timeout": 1})
        return requests

    def close(self) -> None:
        self._http.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _look(self, query: dict[str, Any]) -> tuple[int, list[Record]]:
        answer = self._http.get("/requests", params=query).raise_for_status().json()
        return answer["version"], [Record(**record) for record in answer["requests"]]


async def serve(tethered: bool, port: int) -> None:
    # Named as TCP, so that asyncio turns off Nagle's delay: 40 ms a turn that no real server has.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    server = uvicorn.Server(
        uvicorn.Config(Server().app, log_level="critical", timeout_graceful_shutdown=0, lifespan="off")
    )
    if tethered:
        threading.Thread(target=_end_with_stdin, args=(server,), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    await server.serve(sockets=[listener])


def _end_with_stdin(server: uvicorn.Server) -> None:
    sys.stdin.read()
    server.should_exit = True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A fake OpenAI-compatible model server on loopback.")
    parser.add_argument("--tethered", action="store_true", help="end when standard input does")
    parser.add_argument("--port", type=int, default=0, help="where to listen; any free one by default")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.tethered, arguments.port))
