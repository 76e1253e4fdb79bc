"""The rehearsal of the built-in agent: one turn that leaves no socket, thread or loop."""

import asyncio
import gc
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from ipc.codec import Decoder
from ipc.messages import AgentSpec, Assign, FromWorker, ModelEndpoint, PastAttempt, PastTurn, TurnMessage
from ipc.zmtp import Sent
from worker.attempt import Attempt
from worker.event_loop import new_event_loop
from worker.model import Limits, Model
from worker.outbox import Outbox

# Long for a loopback turn even on a machine that is swapping; longer is a failed start.
_REHEARSAL_SECONDS_MAX = 30
_WORDS = ("All", " is", " well", ".")


class Agent(Protocol):
    async def answer(self, attempt: Attempt) -> str: ...


MakeAgent = Callable[[AgentSpec, Model], Agent]


class RehearsalFailed(Exception):
    """The rehearsal turn gave a wrong answer; a worker would fail the same way."""


def rehearse(make: MakeAgent) -> None:
    """Runs a whole streamed turn against a temporary server; raises RehearsalFailed on another answer."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.handle_request, name="rehearsal")
        thread.start()
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_turn(server.server_address[1], make))
        finally:
            thread.join(_REHEARSAL_SECONDS_MAX)
    # Connections and streams refer to each other in circles; a fork must not inherit their descriptors.
    gc.collect()


async def _turn(port: int, make: MakeAgent) -> None:
    posted: list[bytes] = []
    model = Model(Limits(stall_seconds=_REHEARSAL_SECONDS_MAX, tries_max=1))

    def post(parts: list[bytes]) -> Sent:
        posted.append(parts[1])
        return Sent.SENT

    attempt = Attempt(_assign(port), Outbox(post, failed=lambda sent: None))

    async def answer(attempt: Attempt) -> str:
        return await make(attempt.assign.agent, model).answer(attempt)

    try:
        async with asyncio.timeout(_REHEARSAL_SECONDS_MAX):
            await attempt.run(answer)
    finally:
        await model.close()
    last: FromWorker = Decoder[FromWorker](FromWorker).decode(posted[-1])
    if attempt.text != "".join(_WORDS):
        raise RehearsalFailed(f"the rehearsal ended in {last}")


def _assign(port: int) -> Assign:
    return Assign(
        session="rehearsal",
        turn="rehearsal/2",
        attempt=1,
        messages=(TurnMessage("m_rehearsal", "Is all well?"),),
        agent=AgentSpec("rehearsal", "builtin"),
        model=ModelEndpoint(f"http://127.0.0.1:{port}/v1", "rehearsal"),
        history=(PastTurn(("Hello",), (PastAttempt("Hello."),)),),
    )


class _Server(socketserver.TCPServer):
    """Not http.server's: that one looks up its own name in DNS, which can take seconds."""

    timeout = _REHEARSAL_SECONDS_MAX


class _Handler(socketserver.StreamRequestHandler):
    """Reads one request and streams one answer: as much HTTP as one client needs."""

    timeout = _REHEARSAL_SECONDS_MAX

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline(65_536)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        self.rfile.read(length)
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for event in _events():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")


def _events() -> Iterator[bytes]:
    for word in _WORDS:
        yield _event({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]})
    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield _event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}})
    yield b"data: [DONE]\n\n"


def _event(part: dict[str, object]) -> bytes:
    head = {"id": "rehearsal", "object": "chat.completion.chunk", "created": 0, "model": "rehearsal"}
    return f"data: {json.dumps(head | part)}\n\n".encode()
