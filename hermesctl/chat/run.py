"""Starts the chat: the connection in its thread, the controller and the screen on the loop."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from hermesctl.chat import slash_commands
from hermesctl.chat.connection import Connection
from hermesctl.chat.controller import Controller, Then, Work
from hermesctl.chat.input_history import PrivateHistory
from hermesctl.chat.screen import Screen
from hermesctl.errors import CommandError
from hermesctl.render import cut, one_line
from ipc.errors import WireError
from ipc.places import Places

# Interval at which the progress line moves and other sessions may be checked.
_TICK_SECONDS = 0.25


def run_chat(places: Places, session: str) -> list[str]:
    """Runs the chat until the person leaves; returns the lines to print then."""
    return asyncio.run(_run_chat(places, session))


async def _run_chat(places: Places, session: str) -> list[str]:
    loop = asyncio.get_running_loop()

    def notify() -> None:
        loop.call_soon_threadsafe(drain)

    connection = Connection(places, session, notify)
    connection.connect()
    run_apart = _Background()
    controller = Controller(places, session, connection, run_apart, slash_commands.run)
    screen = Screen(controller, PrivateHistory(places))
    run_apart.changed = screen.refresh

    def drain() -> None:
        for event in connection.arrived():
            controller.handle(event)
        screen.refresh()

    def fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        screen.give_up(context.get("exception") or RuntimeError(context["message"]))

    def ended(thread: asyncio.Future[None]) -> None:
        if (error := thread.exception()) is not None:
            screen.give_up(error)

    loop.set_exception_handler(fail)
    thread = loop.run_in_executor(None, connection.run)
    thread.add_done_callback(ended)
    ticking = asyncio.create_task(_tick(controller, screen))
    try:
        await screen.application.run_async(set_exception_handler=False)
    finally:
        ticking.cancel()
        connection.close()
        await thread
        connection.release()
    return list(_exit_lines(controller))


async def _tick(controller: Controller, screen: Screen) -> None:
    while True:
        controller.poll(time.monotonic())
        if controller.current.log.open_turn is not None:
            screen.refresh()
        await asyncio.sleep(_TICK_SECONDS)


class _Background:
    """Runs blocking work in a thread, and passes the result back to the loop."""

    def __init__(self) -> None:
        # Called after each result; set once there is a screen to draw it on.
        self.changed: Callable[[], None] = lambda: None
        # The loop holds tasks weakly; without this set they could be collected half-way.
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


def _exit_lines(controller: Controller) -> Iterator[str]:
    session = controller.current.session
    turn = controller.current.log.open_turn
    if turn is not None:
        doing = "waits for an answer" if turn.state == "asking" else "goes on"
        yield f"{turn.id} {doing}; come back with: hermesctl chat {session}"
    for text in controller.unsent:
        yield f"not sent: {cut(one_line(text), 60)}"
