"""Agents of a user, good and bad, for the tests of the kind `python`."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from worker.agents.context import AsyncContext, Context

NUMBER = 42
kept: list[Context] = []
left: list["asyncio.Task[bool]"] = []
_loops: list[asyncio.AbstractEventLoop] = []


def plain(context: Context) -> str:
    return f"You said: {context.text}"


def piecewise(context: Context) -> Iterator[str]:
    yield "You said: "
    yield context.text


async def awaited(context: AsyncContext) -> str:
    await asyncio.sleep(0)
    return f"You said: {context.text}"


async def streamed(context: AsyncContext) -> AsyncIterator[str]:
    yield "You said: "
    await asyncio.sleep(0)
    yield context.text


class Callable:
    async def __call__(self, context: AsyncContext) -> str:
        await context.say("You said: ")
        return context.text


an_object = Callable()


def lamp(context: Context) -> str:
    """A tool that touches a file; it goes on when a message steers it."""
    call = context.tool_started("lamp", {"on": True})
    Path(context.text).touch()
    context.tool_finished(call, "it shines")
    while not (steers := context.steers()):
        context.note("waiting")
    return f"It shines, and {steers[0]}."


async def async_lamp(context: AsyncContext) -> AsyncIterator[str]:
    call = await context.tool_started("lamp", {"on": True})
    await asyncio.to_thread(Path(context.text).touch)
    await context.tool_finished(call, "it shines")
    while not (steers := await context.steers()):
        await context.note("waiting")
    yield f"It shines, and {steers[0]}."


def nothing(context: Context) -> None:
    context.note("thinking")


def a_number(context: Context) -> int:
    return 42


def numbers(context: Context) -> Iterator[int]:
    yield 42


def forgotten(context: AsyncContext) -> object:
    return awaited(context)


def broken(context: Context) -> str:
    raise KeyError(context.text)


def out_of_items(context: Context) -> str:
    return str(next(iter(())))


def exits(context: Context) -> str:
    sys.exit(context.text)


def prints(context: Context) -> str:
    print(context.text)
    print(context.text, file=sys.stderr)
    subprocess.run(["echo", context.text], check=True)
    os.write(2, context.text.encode())
    return "Printed."


def closes_its_output(context: Context) -> str:
    sys.stdout.close()
    return "Closed."


def leaves_a_thread(context: Context) -> str:
    kept.append(context)
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return str(os.getpid())


def leaves_a_process(context: Context) -> str:
    command = "setsid sleep 1000 >/dev/null 2>&1 & echo $!"
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=True).stdout.decode()


def ends_badly(context: Context) -> str:
    """The status of a command that ends long before it is asked for."""
    failed = subprocess.Popen(["false"])
    # Other children come and go meanwhile, and the worker's loop beats.
    for _ in range(3):
        subprocess.run(["sleep", "0.7"], check=True)
    return str(failed.wait())


async def leaves_a_task(context: AsyncContext) -> str:
    """The loop is the same in every turn; tasks are not carried over."""
    loop = asyncio.get_running_loop()
    others = len(asyncio.all_tasks()) - 1
    _loops.append(loop)
    left.append(loop.create_task(asyncio.Event().wait()))
    await asyncio.to_thread(os.getpid)
    return f"{len(set(map(id, _loops)))} loop, {others} others"


def remembers(context: Context) -> str:
    kept.append(context)
    late = "nothing"
    if len(kept) > 1:
        try:
            kept[0].say("late")
        except RuntimeError as error:
            late = str(error)
    return f"{os.getpid()}: {late}"


def blocks(context: Context) -> str:
    context.say("I begin.")
    threading.Event().wait()
    return "never"


def asks(context: Context) -> str:
    return f"You chose {context.ask('Which colour?')}."
