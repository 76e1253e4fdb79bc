"""The chat put together: the line in its thread, the desk and the screen on the loop."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from hermesctl.chat.composing import PrivateHistory
from hermesctl.chat.desk import Desk, Then, Work
from hermesctl.chat.line import Line
from hermesctl.chat.screen import Screen
from hermesctl.errors import CommandError
from hermesctl.render import cut, one_line
from ipc.endpoints import Places

# How often the sign of life moves and other sessions may be looked at.
_TICK_SECONDS = 0.25


def talk(places: Places, session: str) -> list[str]:
    """Runs the chat until the person leaves; returns what to say then."""
    return asyncio.run(_talk(places, session))


async def _talk(places: Places, session: str) -> list[str]:
    loop = asyncio.get_running_loop()
    line = Line(places, session, lambda: loop.call_soon_threadsafe(drain))
    line.connect()
    desk = Desk(places, session, line, _Apart(lambda: screen.refresh()))
    screen = Screen(desk, PrivateHistory(places))

    def drain() -> None:
        for happening in line.arrived():
            desk.take(happening)
        screen.refresh()

    def fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context["message"])
        if screen.application.is_running and not screen.application.is_done:
            screen.application.exit(exception=error)

    loop.set_exception_handler(fail)
    thread = loop.run_in_executor(None, line.run)
    ticking = asyncio.create_task(_tick(desk, screen))
    try:
        await screen.application.run_async(set_exception_handler=False)
    finally:
        ticking.cancel()
        line.close()
        await thread
        line.release()
    return list(_farewell(desk))


async def _tick(desk: Desk, screen: Screen) -> None:
    while True:
        desk.look(time.monotonic())
        if desk.current.transcript.open_turn is not None:
            screen.refresh()
        await asyncio.sleep(_TICK_SECONDS)


class _Apart:
    """Runs what may wait for a disk or a socket in a thread, and brings the result back to the loop."""

    def __init__(self, refresh: Any) -> None:
        self._refresh = refresh
        # The loop keeps no hold of its tasks; without this they could vanish half-way.
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, work: Work, then: Then) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Work, then: Then) -> None:
        try:
            result = await asyncio.get_running_loop().run_in_executor(None, work)
        except CommandError as error:
            then(error)
        else:
            then(result)
        self._refresh()


def _farewell(desk: Desk) -> Iterator[str]:
    session = desk.current.session
    turn = desk.current.transcript.open_turn
    if turn is not None:
        doing = "waits for an answer" if turn.state == "asking" else "goes on"
        yield f"{turn.id} {doing}; come back with: hermesctl chat {session}"
    for text in desk.unsent:
        yield f"not sent: {cut(one_line(text), 60)}"
