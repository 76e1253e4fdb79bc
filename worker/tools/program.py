"""Runs calls of a tool as processes of one of our modules: JSON goes in, the result comes out."""

import json
from collections.abc import Mapping
from typing import Any

from ipc import interpreter
from worker.tools import Report
from worker.tools.command import Command
from worker.tools.excerpt import Excerpt

# More than any of these tools gives back.
_OUTPUT_BYTES_MAX = 60_000


class Program:
    """One process a call; several may run at once."""

    def __init__(self, module: str, seconds_max: float) -> None:
        self._line = interpreter.command(module)
        self._seconds_max = seconds_max
        self._running: set[Command] = set()

    async def call(self, call: Mapping[str, Any]) -> Report:
        output = Excerpt(_OUTPUT_BYTES_MAX)
        command = Command(self._line, ".", output.add, json.dumps(call).encode())
        self._running.add(command)
        try:
            if await command.wait(self._seconds_max):
                return Report(output.text(), command.exit == 0)
            return Report(f"error: it took longer than {self._seconds_max:g} s", ok=False)
        finally:
            self._running.discard(command)
            command.close()

    def close(self) -> None:
        for command in self._running:
            command.close()
        self._running.clear()
