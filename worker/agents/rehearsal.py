"""The rehearsal of the built-in agent: one turn that leaves no socket, thread or loop."""

import asyncio
import gc
from collections.abc import Callable
from typing import Protocol

from ipc.codec import Decoder
from ipc.messages import AgentSpec, Assign, FromWorker, ModelEndpoint, PastAttempt, PastTurn, TurnMessage
from ipc.zmtp import Sent
from worker.agents import rehearsal_server
from worker.agents.rehearsal_server import SECONDS_MAX, WORDS
from worker.attempt import Attempt
from worker.event_loop import new_event_loop
from worker.model import Limits, Model
from worker.outbox import Outbox


class Agent(Protocol):
    async def answer(self, attempt: Attempt) -> str: ...


MakeAgent = Callable[[AgentSpec, Model], Agent]


class RehearsalFailed(Exception):
    """The rehearsal turn gave a wrong answer; a worker would fail the same way."""


def rehearse(make: MakeAgent) -> None:
    """Runs a whole streamed turn against a temporary server; raises RehearsalFailed on another answer."""
    with (
        rehearsal_server.serving() as base_url,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        runner.run(_turn(base_url, make))
    # Connections and streams refer to each other in circles; a fork must not inherit their descriptors.
    gc.collect()


async def _turn(base_url: str, make: MakeAgent) -> None:
    posted: list[bytes] = []
    model = Model(Limits(stall_seconds=SECONDS_MAX, tries_max=1))

    def post(parts: list[bytes]) -> Sent:
        posted.append(parts[1])
        return Sent.SENT

    attempt = Attempt(_assign(base_url), Outbox(post, failed=lambda sent: None))

    async def answer(attempt: Attempt) -> str:
        return await make(attempt.assign.agent, model).answer(attempt)

    try:
        async with asyncio.timeout(SECONDS_MAX):
            await attempt.run(answer)
    finally:
        await model.close()
    last: FromWorker = Decoder[FromWorker](FromWorker).decode(posted[-1])
    if attempt.text != "".join(WORDS):
        raise RehearsalFailed(f"the rehearsal ended in {last}")


def _assign(base_url: str) -> Assign:
    return Assign(
        session="rehearsal",
        turn="rehearsal/2",
        attempt=1,
        messages=(TurnMessage("m_rehearsal", "Is all well?"),),
        agent=AgentSpec("rehearsal", "builtin"),
        model=ModelEndpoint(base_url, "rehearsal"),
        history=(PastTurn(("Hello",), (PastAttempt("Hello."),)),),
    )
