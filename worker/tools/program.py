"""Runs calls of a tool as processes of one of our modules: JSON goes in, the result comes out."""

import json
from collections.abc import Mapping
from typing import Any

from ipc import interpreter
from worker.tools import Report
from worker.tools.command import Command
from worker.tools.excerpt import SHOWN_BYTES_MAX, Excerpt


class Program:
    """One process a call; several may run at once."""

    def __init__(self, module: str, seconds_max: float, shown_bytes_max: int = SHOWN_BYTES_MAX) -> None:
        self._shown_bytes_max = shown_bytes_max
        self._line = interpreter.command(module)
        self._seconds_max = seconds_max
        self._running: set[Command] = set()

    async def call(self, call: Mapping[str, Any]) -> Report:
        output = Excerpt(self._shown_bytes_max, kept=True)
        command = Command(self._line, ".", output.add, json.dumps(call).encode())
        self._running.add(command)
        try:
            if await command.wait(self._seconds_max):
                return Report(output.text(), command.exit == 0)
            return Report(f"error: it took longer than {self._seconds_max:g} s", ok=False)
        finally:
            self._running.discard(command)
            command.close()
            output.close()

    def close(self) -> None:
        for command in self._running:
            command.close()
        self._running.clear()
