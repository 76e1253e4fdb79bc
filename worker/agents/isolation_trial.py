"""The agent that tries the isolation of its own cell: every attack as a command of a turn, no model."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ipc import interpreter
from ipc.isolation import Targets
from ipc.messages import AgentSpec, ToolClass
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.tools import Note, Report
from worker.tools.command import Command
from worker.tools.excerpt import Excerpt

# Some fifty results of at most 300 characters.
_OUTPUT_BYTES_MAX = 60_000
# Each attack has ten seconds at most, and nearly all of them take milliseconds.
_SECONDS_MAX = 120.0
# A foreign interpreter does not find it by itself.
_PACKAGES = str(Path(msgspec.__file__).parents[1])
# Made at import: the types of its fields are looked up in our modules (worker/own_modules.py).
_decoder = msgspec.json.Decoder(Targets)


class Isolation:
    """Answers with the Trial of the attacks, as JSON."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec

    async def answer(self, attempt: Attempt) -> str:
        tool = _Attacks()
        try:
            report = await attempt.tool(tool, "attacks", self._targets(attempt.assign.messages[-1].text))
        finally:
            tool.close()
        if not report.ok:
            raise AgentError(f"the attacks could not be run: {report.text}", "hermesctl logs says more")
        await attempt.stream(report.text)
        return "stop"

    def _targets(self, asked: str) -> str:
        """The client's targets, with those that the supervisor and this worker know."""
        known = {**self._spec.options, "worker": os.getpid()}
        if self._spec.name not in known["agents"]:
            raise AgentError(
                f"there is no agent named {self._spec.name!r}", f"name one of: {', '.join(known['agents'])}"
            )
        try:
            _decoder.decode(asked)
            return json.dumps(json.loads(asked) | known)
        except (msgspec.DecodeError, ValueError):
            raise AgentError(
                "this session tries the isolation of cells, and answers nothing else",
                "use `hermesctl doctor --isolation`, or another name for a session",
            ) from None


class _Attacks:
    """Runs worker.attacks like any command of an agent: with the same environment and filters."""

    name: Final = "isolation"
    description: Final = "Tries harmless forms of the known attacks on this cell."
    schema: Final[Mapping[str, Any]] = MappingProxyType({"type": "object"})
    repeat: Final[ToolClass] = "pure"

    def __init__(self) -> None:
        self._command: Command | None = None

    async def run(self, arguments: dict[str, Any], note: Note) -> Report:
        output = Excerpt(_OUTPUT_BYTES_MAX)
        line = interpreter.command("worker.attacks", json.dumps(arguments), path=(_PACKAGES,))
        self._command = command = Command(line, ".", output.add)
        if not await command.wait(_SECONDS_MAX):
            return Report("they took too long", ok=False)
        return Report(output.text().strip(), command.exit == 0, command.exit, command.ended_by)

    def close(self) -> None:
        if self._command is not None:
            self._command.close()
