"""Requests that are being answered: repeated ones join them, and a turn that no client waits for is stopped.

Clients repeat a request whose connection was cut, with the same body and often without any mark. While the
first one is being answered, the same request joins it. A connection that ends says nothing else: the client
has gone, or it is about to ask again. So a turn is stopped at once only when a part of its answer was sent,
which no client asks for again; otherwise after the time in which clients repeat a request.

The gateway's own end is not the client's: nothing is stopped then, and the turn goes on in the journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from gateway.errors import HttpError, Unavailable
from gateway.openai.session_choice import Placed, Wish
from gateway.supervisor_client import SupervisorClient
from ipc.messages import Done, Interrupt, Queue, Show, Table

# Clients ask again after half a second (openai) to two seconds (AI SDK).
AGAIN_SECONDS = 3.0
# The supervisor may be away, or restarting, when a client goes.
_STOP_TRIES = 30
_STOP_AGAIN_SECONDS = 1.0


class OpenRequest:
    """One request, and those that repeat it. `placed` is done when its message is accepted."""

    def __init__(self, digest: str, by: str) -> None:
        self.digest = digest
        self.by = by
        self.placed: asyncio.Future[Placed] = asyncio.get_running_loop().create_future()
        self.listeners = 1
        # Known once a turn has taken the message.
        self.turn: str | None = None
        self.is_ended = False
        # A part of the answer was sent to a client.
        self.has_sent = False
        # A client wants the turn to go on without it.
        self.is_detached = False


class OpenRequests:
    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        self._open: dict[str, OpenRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def enter(self, wish: Wish, place: Callable[[], Awaitable[Placed]]) -> tuple[OpenRequest, Placed]:
        """Returns the same request if it is open, else a new one whose message `place` has sent.

        A request in a session that the client names, or one that it says to repeat, joins the same one in
        any case; any other one only if no client listens to that: two of them may mean the same words.
        """
        found = self._open.get(wish.digest)
        if found is not None and (wish.name or wish.repeats or not found.listeners):
            found.listeners += 1
            try:
                return found, await asyncio.shield(found.placed)
            except HttpError:
                found.listeners -= 1
                raise
        request = self._open[wish.digest] = OpenRequest(wish.digest, wish.by)
        try:
            request.placed.set_result(await place())
        except HttpError as error:
            self._forget(request)
            request.placed.set_exception(error)
            # Those that have joined get the same refusal; without them it is no fault of the program.
            request.placed.exception()
            raise
        except BaseException:
            self._forget(request)
            request.placed.set_exception(Unavailable("the gateway failed at this request"))
            request.placed.exception()
            raise
        return request, request.placed.result()

    def leave(self, request: OpenRequest, *, is_gone: bool) -> None:
        """A listener has its answer, or has gone before it had one."""
        request.listeners -= 1
        if request.listeners:
            return
        if is_gone and not request.is_ended and not request.is_detached:
            self._start(self._abandon(request))
        elif is_gone and request.is_ended:
            self._start(self._keep(request))
        else:
            self._forget(request)

    async def _keep(self, request: OpenRequest) -> None:
        """Its answer was not delivered: the same request gets it, if it comes soon."""
        await asyncio.sleep(AGAIN_SECONDS)
        if not request.listeners:
            self._forget(request)

    async def _abandon(self, request: OpenRequest) -> None:
        if not request.has_sent:
            await asyncio.sleep(AGAIN_SECONDS)
        if request.listeners:
            return
        self._forget(request)
        for _ in range(_STOP_TRIES):
            try:
                await stop_message(self._supervisor, request.placed.result(), request.turn, request.by)
                return
            except Unavailable:
                await asyncio.sleep(_STOP_AGAIN_SECONDS)
            except HttpError:
                return  # it has ended meanwhile

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, request: OpenRequest) -> None:
        if self._open.get(request.digest) is request:
            del self._open[request.digest]


async def stop_message(
    supervisor: SupervisorClient, placed: Placed, turn: str | None, by: str
) -> Done | None:
    """Interrupts the turn of a message, and no other; a message that no turn has taken is dropped.

    Returns None when neither is there any more.
    """
    if turn is None:
        try:
            return await supervisor.ask(Queue(placed.session, "drop", placed.message, by=by), Done)
        except HttpError as error:
            if error.status != 404:
                raise
        story = await supervisor.ask(Show("story", id=placed.message, limit=1), Table)
        turn = story.rows[0].get("turn") if story.rows else None
    return await supervisor.ask(Interrupt(placed.session, by, turn), Done) if turn else None
