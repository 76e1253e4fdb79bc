"""The agent of kind `acp`: a program that speaks the Agent Client Protocol, with its own model and tools.

The program runs inside the cell and lives as long as its worker. A spare starts and initialises it before
its first turn; a session is opened with the first turn: loaded or resumed when an earlier process had
one, else new. Nothing of it needs to cooperate with an interrupt: the cell is killed, and the next turn
has another process.

A spare's process is initialised before the session's workspace is mounted over its home. One that has
written to its home by then has files open that are covered for good: it is started again.
"""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import Any

from ipc.messages import AgentSpec, Setup, Usage
from worker import spending
from worker.agents import acp_kept_session, acp_permission
from worker.agents.acp_connection import Connection, PermissionAsked, PromptEnded
from worker.agents.acp_kept_session import KeptSession
from worker.agents.acp_process import AgentProcess
from worker.agents.acp_prompt import prompt_text, turn_number
from worker.agents.acp_updates import Updates
from worker.approvals import Approvals
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.tools.command import environment

# A spare is ready by then in any case; its first turn waits for the rest.
_SET_UP_SECONDS_MAX = 10.0
# Words of the protocol and of our records; other reasons keep their name.
_FINISHES = {"end_turn": "stop", "max_tokens": "length"}


def load(entry: str) -> "AcpKind":
    return AcpKind()


class AcpKind:
    """Programs have nothing to rehearse; the import of the SDK is what a zygote saves its workers."""

    def rehearse(self) -> None:
        pass

    def agent(self, spec: AgentSpec) -> "Acp":
        return Acp(spec)


@dataclass(slots=True)
class _Running:
    """A started agent: its options, the path of its home, and the folder that was there then."""

    connection: Connection
    options: dict[str, Any]
    home_path: str
    home: int
    session: KeptSession | None = None

    def close(self) -> None:
        self.connection.close()
        with contextlib.suppress(OSError):
            os.close(self.home)
        self.home = -1


class Acp:
    """Answers the turns of one hermes session through one ACP session."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._secrets: dict[str, str] = {}
        self._is_set_up = False
        self._starting: asyncio.Task[_Running] | None = None

    async def set_up(self, setup: Setup) -> None:
        """Starts the program ahead of the first turn, which gets its fault if it has one."""
        self._secrets = setup.secrets
        self._is_set_up = True
        if any(name not in setup.secrets for name in setup.agent.options.get("env_from") or ()):
            return  # they come with the first turn
        self._starting = asyncio.create_task(self._start(setup.agent))
        await asyncio.wait({self._starting}, timeout=_SET_UP_SECONDS_MAX)

    async def answer(self, attempt: Attempt) -> str:
        await spending.check(attempt, holds=True)
        self._secrets = {**self._secrets, **attempt.assign.secrets}
        running = await self._running(attempt.assign.agent)
        is_usable = False
        try:
            finish = await self._answer(attempt, running)
            is_usable = self._is_set_up
        finally:
            # After a fault its state is unknown, and without a set-up this object is not kept.
            if not is_usable:
                running.close()
        if not attempt.text.strip() and not any(past.text.strip() for past in attempt.assign.tried):
            raise AgentError(
                f"the agent ended its turn without an answer ({finish})",
                "send the message again, or ask differently",
            )
        return finish

    async def close(self) -> None:
        """Ends the program, and waits until nothing of it is held."""
        if self._starting is not None and not self._starting.cancelled() and not self._starting.exception():
            running = self._starting.result()
            running.close()
            await running.connection.process.closed.wait()

    async def _answer(self, attempt: Attempt, running: _Running) -> str:
        session = await self._session(attempt, running)
        text = prompt_text(attempt.assign, session.known_turns)
        # Written before the prompt: whatever ends this process, the next one finds the session.
        acp_kept_session.write(os.getcwd(), attempt.assign, session)
        finish = await self._prompt(attempt, running.connection, session.id, text)
        running.session = KeptSession(session.id, session.program, turn_number(attempt.assign))
        acp_kept_session.write(os.getcwd(), attempt.assign, running.session)
        return finish

    async def _running(self, spec: AgentSpec) -> _Running:
        """The agent that was started before, if it is still usable."""
        if self._starting is not None:
            running = await self._started(self._starting)
            if running.connection.is_open and running.options == spec.options and not _home_is_lost(running):
                return running
            running.close()
        self._starting = asyncio.create_task(self._start(spec))
        return await self._started(self._starting)

    async def _started(self, starting: "asyncio.Task[_Running]") -> _Running:
        try:
            return await starting
        except AgentError:
            # Tried again with the next turn: somebody may have mended it.
            self._starting = None
            raise

    async def _start(self, spec: AgentSpec) -> _Running:
        line, secrets = _command(spec), self._named_secrets(spec)
        given = environment(os.environ) | _texts(spec, "env") | secrets
        home = given.get("HOME", "/")
        folder = _existing(home)
        process = AgentProcess(line, folder, given, list(secrets.values()))
        connection = Connection(process)
        try:
            await process.connect()
            await connection.initialize()
        except AgentError:
            process.kill()
            await process.closed.wait()
            raise
        except asyncio.CancelledError:
            process.kill()
            raise
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return _Running(connection, spec.options, folder, opened)

    def _named_secrets(self, spec: AgentSpec) -> dict[str, str]:
        named = spec.options.get("env_from") or ()
        if missing := [name for name in named if name not in self._secrets]:
            raise AgentError(
                f"[agents.{spec.name}] env_from names {missing[0]}, which is not set",
                f"set {missing[0]} in the environment of the service, then restart it",
            )
        return {name: self._secrets[name] for name in named}

    async def _session(self, attempt: Attempt, running: _Running) -> KeptSession:
        if running.session is not None:
            return running.session
        folder, program = os.getcwd(), _command(attempt.assign.agent)
        kept = acp_kept_session.read(folder, attempt.assign, program)
        if kept is not None:
            if await running.connection.restore_session(kept.id, folder):
                return kept
            attempt.note("the agent could not load its session: a new one begins with the record of this one")
        return KeptSession(await running.connection.new_session(folder), program)

    async def _prompt(self, attempt: Attempt, connection: Connection, session: str, text: str) -> str:
        updates, approvals = Updates(attempt), Approvals(attempt.assign.agent, attempt)
        items = connection.prompt(session, text)
        while not isinstance(item := await items.get(), PromptEnded):
            if isinstance(item, PermissionAsked):
                await acp_permission.answer(attempt, approvals, updates, item)
            else:
                await updates.take(item)
            connection.taken()
        if error := item.response.exception():
            # The outcome of its open calls is unknown: nothing is recorded as their result.
            raise await connection.fault(error)
        await updates.close()
        response = item.response.result()
        if response.usage is not None:
            attempt.spend(Usage(response.usage.input_tokens, response.usage.output_tokens))
        return _FINISHES.get(response.stop_reason, response.stop_reason)


def _existing(folder: str) -> str:
    return folder if os.path.isdir(folder) else "/"


def _home_is_lost(running: _Running) -> bool:
    """True when the workspace covers the home folder that the agent has written to."""
    before, now = os.fstat(running.home), os.stat(running.home_path)
    if (before.st_dev, before.st_ino) == (now.st_dev, now.st_ino) or running.session is not None:
        return False
    return bool(os.listdir(running.home))


def _command(spec: AgentSpec) -> tuple[str, ...]:
    line = spec.options.get("command")
    if (
        not isinstance(line, list | tuple)
        or not line
        or not all(isinstance(word, str) and word for word in line)
    ):
        raise AgentError(
            f"the agent {spec.name!r} has no command",
            f'set [agents.{spec.name}] command in hermes.toml, such as ["opencode", "acp"]',
        )
    return tuple(line)


def _texts(spec: AgentSpec, name: str) -> dict[str, str]:
    value = spec.options.get(name) or {}
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}
