"""The chat put together: the line in its thread, the desk and the screen on the loop."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from hermesctl.chat.connection import Line
from hermesctl.chat.controller import Desk, Then, Work
from hermesctl.chat.input_history import PrivateHistory
from hermesctl.chat.screen import Screen
from hermesctl.errors import CommandError
from hermesctl.render import cut, one_line
from ipc.errors import WireError
from ipc.places import Places

# How often the sign of life moves and other sessions may be looked at.
_TICK_SECONDS = 0.25


def talk(places: Places, session: str) -> list[str]:
    """Runs the chat until the person leaves; returns what to say then."""
    return asyncio.run(_talk(places, session))


async def _talk(places: Places, session: str) -> list[str]:
    loop = asyncio.get_running_loop()

    def notify() -> None:
        loop.call_soon_threadsafe(drain)

    line = Line(places, session, notify)
    line.connect()
    apart = _Apart()
    desk = Desk(places, session, line, apart)
    screen = Screen(desk, PrivateHistory(places))
    apart.changed = screen.refresh

    def drain() -> None:
        for happening in line.arrived():
            desk.take(happening)
        screen.refresh()

    def fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        screen.give_up(context.get("exception") or RuntimeError(context["message"]))

    def ended(thread: asyncio.Future[None]) -> None:
        if (error := thread.exception()) is not None:
            screen.give_up(error)

    loop.set_exception_handler(fail)
    thread = loop.run_in_executor(None, line.run)
    thread.add_done_callback(ended)
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

    def __init__(self) -> None:
        # Called after each result; set once there is a screen to draw it on.
        self.changed: Callable[[], None] = lambda: None
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
        except WireError as error:
            then(CommandError(error.fault, error.hint))
        else:
            then(result)
        self.changed()


def _farewell(desk: Desk) -> Iterator[str]:
    session = desk.current.session
    turn = desk.current.transcript.open_turn
    if turn is not None:
        doing = "waits for an answer" if turn.state == "asking" else "goes on"
        yield f"{turn.id} {doing}; come back with: hermesctl chat {session}"
    for text in desk.unsent:
        yield f"not sent: {cut(one_line(text), 60)}"
