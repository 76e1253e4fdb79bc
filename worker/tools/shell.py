"""The shell tool: commands in the foreground and in the background; nothing it starts outlives the turn."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import msgspec

from ipc.messages import ToolClass
from worker.tools import Note, Report
from worker.tools.command import Command
from worker.tools.excerpt import Excerpt
from worker.tools.live_output import Ticker

_SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
_RUN_SECONDS = 120.0
_TIMEOUT_SECONDS_MAX = 3600.0
# Interval of notes for a silent command: without any progress the turn counts as stuck.
_SIGN_SECONDS = 20.0
# More than one turn needs; each holds a pipe.
_HELD_MAX = 32

_DESCRIPTION = (
    "Runs commands with bash on the user's machine. Action run (the default) waits for the command and gives "
    "its exit status and its output, stdout and stderr as they came; of a long output the middle is left "
    "out, and its first line names a file with all of it. After timeout_seconds (default 120) the command is "
    "killed. Action start runs a command in the background and gives its id at once; read gives what it has "
    "written since the last read, and with timeout_seconds waits that long for its end; stop ends it. "
    "Standard input is empty. Every command has a shell of its own: cd and variables do not carry over. "
    "Whatever is still running when you end your answer is killed: nothing goes on after the turn."
)
_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["run", "start", "read", "stop"]},
            "command": {"type": "string", "description": "for run and start: the command line"},
            "folder": {"type": "string", "description": "where to run it; the home folder by default"},
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": _TIMEOUT_SECONDS_MAX},
            "id": {"type": "string", "description": "for read and stop: which background command"},
        },
        "additionalProperties": False,
    }
)


class _Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of one call, as the schema has them."""

    action: Literal["run", "start", "read", "stop"] = "run"
    command: str = ""
    folder: str = ""
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=_TIMEOUT_SECONDS_MAX)] | None = None
    id: str = ""


class _Background:
    """A command in the background, and its output since the last read."""

    def __init__(self, order: _Order) -> None:
        self._unread = Excerpt(kept=True)
        self.command = Command(_line(order), order.folder or ".", self._received)

    def read(self, *, is_asked_to_end: bool = False) -> Report:
        unread, self._unread = self._unread, Excerpt(kept=True)
        return _report(self.command, unread, ok=is_asked_to_end or not _has_failed(self.command))

    def close(self) -> None:
        self.command.close()
        self._unread.close()

    def _received(self, content: bytes) -> None:
        self._unread.add(content)


class Shell:
    """The shell of one turn."""

    name: Final = "shell"
    description: Final = _DESCRIPTION
    schema: Final = _SCHEMA
    repeat: Final[ToolClass] = "unsafe"

    def __init__(self) -> None:
        self._background: dict[str, _Background] = {}
        # Running commands, and ended ones whose pipe is still held by their descendants.
        self._foreground: list[Command] = []
        self._started = 0

    async def run(self, arguments: dict[str, Any], note: Note) -> Report:
        order = msgspec.convert(arguments, _Order, strict=False)
        match order.action:
            case "run":
                return await self._run(order, note)
            case "start":
                return self._start(order)
            case "read":
                return await self._read(order)
            case "stop":
                return await self._stop(order)

    def close(self) -> None:
        for command in self._foreground:
            command.close()
        for background in self._background.values():
            background.close()
        self._background.clear()
        self._foreground.clear()

    async def _run(self, order: _Order, note: Note) -> Report:
        output, ticker = Excerpt(kept=True), Ticker(note)

        def on_output(content: bytes) -> None:
            output.add(content)
            ticker.add(content)

        command = Command(_line(order), order.folder or ".", on_output)
        self._foreground.append(command)
        limit = order.timeout_seconds or _RUN_SECONDS
        in_time = await _watched(command, limit, note)
        if not in_time:
            await command.stop()
        command.ignore()
        ticker.close()
        remarks = [] if in_time else [f"killed: it took longer than {limit:g} s"]
        if command.has_ended and not command.is_silent:
            remarks.append("something it started still runs and ends with this turn")
        self._forget_some()
        return _report(command, output, *remarks, ok=in_time and not _has_failed(command))

    def _start(self, order: _Order) -> Report:
        self._forget_some()
        if len(self._background) >= _HELD_MAX:
            raise RuntimeError(f"{_HELD_MAX} commands run in the background already: stop one of them first")
        background = _Background(order)
        self._started += 1
        name = f"b{self._started}"
        self._background[name] = background
        return Report(f"started in the background as {name}")

    async def _read(self, order: _Order) -> Report:
        background = self._named(order)
        await background.command.wait(order.timeout_seconds or 0)
        return background.read()

    async def _stop(self, order: _Order) -> Report:
        background = self._named(order)
        await background.command.stop()
        return background.read(is_asked_to_end=True)

    def _named(self, order: _Order) -> _Background:
        if order.id not in self._background:
            there = ", ".join(self._background) or "none"
            raise LookupError(f"no background command has the id {order.id!r}; there are: {there}")
        return self._background[order.id]

    def _forget_some(self) -> None:
        """Releases ended commands: those whose pipe is closed, and the oldest above the limit."""
        held = [command for command in self._foreground if not (command.has_ended and command.is_silent)]
        surplus = [command for command in held if command.has_ended][:-_HELD_MAX]
        for command in surplus:
            command.close()
        self._foreground = [command for command in held if command not in surplus]
        ended = [name for name, each in self._background.items() if each.command.has_ended]
        for name in ended[: max(0, len(self._background) + 1 - _HELD_MAX)]:
            self._background.pop(name).close()


async def _watched(command: Command, limit: float, note: Note) -> bool:
    """Waits for the command, with a note at intervals."""
    while (left := limit - command.seconds) > 0:
        if await command.wait(min(left, _SIGN_SECONDS)):
            return True
        note(command.outcome)
    return command.has_ended


def _line(order: _Order) -> list[str]:
    if not order.command.strip():
        raise ValueError(f"action {order.action} needs a command")
    return [_SHELL, "-c", order.command]


def _has_failed(command: Command) -> bool:
    """True when it ended otherwise than with status 0; a running one has not failed."""
    return command.has_ended and command.exit != 0


def _report(command: Command, output: Excerpt, *remarks: str, ok: bool) -> Report:
    outcome = "; ".join((command.outcome, *remarks))
    text = f"[{outcome}]\n{output.text() or '(no output)'}"
    return Report(text, ok, command.exit, command.ended_by)
