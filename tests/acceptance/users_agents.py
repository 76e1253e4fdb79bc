"""Agents of a user, for whole services: the same behaviour as a function, a coroutine and its generator.

The message says what to do: `slow` streams without end, `tool` runs a command without end the first time.
"""

import asyncio
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_FOREVER = ["sleep", "1000"]


def _pause() -> None:
    threading.Event().wait(0.01)


def _word(context: Any) -> str:
    return str(context.text).partition(" ")[0]


def _begins(context: Any) -> bool:
    """True in the first attempt: a later one sees the call of the earlier one."""
    return not any(tool.name == "build" for attempt in context.earlier for tool in attempt.tools)


def _past(context: Any) -> str:
    unknown = [tool for attempt in context.earlier for tool in attempt.tools if tool.result is None]
    return f"{len(context.history)} turns before, {len(unknown)} calls cut off."


def plain(context: Any) -> str:
    if _word(context) == "slow":
        while True:
            context.say("word ")
            _pause()
    if _word(context) == "tool" and _begins(context):
        call = context.tool_started("build", {"all": True}, repeat="idempotent")
        Path("began").touch()
        context.tool_finished(call, str(subprocess.run(_FOREVER).returncode))
    if _word(context) == "steered":
        while not (steers := context.steers()):
            _pause()
        return f"Steered: {steers[0]}"
    return _past(context)


async def awaited(context: Any) -> str:
    if _word(context) == "slow":
        while True:
            await context.say("word ")
            await asyncio.to_thread(_pause)
    if _word(context) == "tool" and _begins(context):
        call = await context.tool_started("build", {"all": True}, repeat="idempotent")
        process = await asyncio.create_subprocess_exec(*_FOREVER)
        await context.tool_finished(call, str(await process.wait()))
    if _word(context) == "steered":
        while not (steers := await context.steers()):
            await asyncio.to_thread(_pause)
        return f"Steered: {steers[0]}"
    return _past(context)


async def async_generator(context: Any) -> AsyncIterator[str]:
    if _word(context) == "slow":
        while True:
            yield "word "
            await asyncio.to_thread(_pause)
    yield await awaited(context)
