"""The agent of kind `acp`: a program that speaks the Agent Client Protocol, with its own model and tools.

The program runs inside the cell and lives as long as its worker. A spare starts and initialises it before
its first turn; a session is opened with the first turn: loaded or resumed when an earlier process had
one, else new. Nothing of it needs to cooperate with an interrupt: the cell is killed, and the next turn
has another process.

A spare's process is initialised before the session's workspace is mounted over its home. One that has
written to its home by then has files open that are covered for good: it is started again. So is one that
fails while it starts and the workspace is mounted: it may have made a folder that it does not find any more.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp import schema

from ipc.messages import AgentSpec, Assign, Setup, Usage
from worker import spending
from worker.agents import acp_kept_session, acp_permission
from worker.agents.acp_connection import Connection, Item, PermissionAsked, PromptEnded
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


class _Home:
    """The home folder of a program, as it was when the program was started."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def is_covered(self) -> bool:
        """True when another folder is mounted there now: the workspace."""
        before, now = os.fstat(self._opened), os.stat(self.path)
        return (before.st_dev, before.st_ino) != (now.st_dev, now.st_ino)

    def is_lost(self) -> bool:
        """True when what was written to it is covered."""
        return self.is_covered() and bool(os.listdir(self._opened))

    @property
    def is_closed(self) -> bool:
        return self._opened < 0

    def close(self) -> None:
        if not self.is_closed:
            os.close(self._opened)
            self._opened = -1


@dataclass(slots=True)
class _Running:
    """A started agent, and its options then."""

    connection: Connection
    options: dict[str, Any]
    home: _Home
    # With the turns that this process knows, and the last turn that it has had the time to store.
    session: KeptSession | None = None
    stored_turns: int = 0

    def is_usable(self, spec: AgentSpec) -> bool:
        if not self.connection.is_open or self.home.is_closed or self.options != spec.options:
            return False
        return self.session is not None or not self.home.is_lost()

    def close(self) -> None:
        self.connection.close()
        self.home.close()


@dataclass(slots=True, frozen=True)
class _Starting:
    task: "asyncio.Task[_Running]"
    home: _Home

    async def give_up(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


class Acp:
    """Answers the turns of one hermes session through one ACP session."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._secrets: dict[str, str] = {}
        self._is_set_up = False
        self._starting: _Starting | None = None

    async def set_up(self, setup: Setup) -> AgentError | None:
        """Starts the program ahead of the first turn, which gets its fault if it has one."""
        self._secrets = setup.secrets
        self._is_set_up = True
        if any(name not in setup.secrets for name in setup.agent.options.get("env_from") or ()):
            return None  # they come with the first turn
        starting = self._starting = self._begin(setup.agent)
        await asyncio.wait({starting.task}, timeout=_SET_UP_SECONDS_MAX)
        if starting.task.done() and isinstance(error := starting.task.exception(), AgentError):
            return error
        return None

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
        if self._starting is None:
            return
        task = self._starting.task
        if not task.cancelled() and not task.exception():
            running = task.result()
            running.close()
            await running.connection.process.closed.wait()

    async def _answer(self, attempt: Attempt, running: _Running) -> str:
        session = await self._session(attempt, running)
        text = prompt_text(attempt.assign, session.known_turns)
        file, answered = acp_kept_session.path(os.getcwd(), attempt.assign), turn_number(attempt.assign)
        # Written before the prompt: whatever ends this process, the next one finds the session.
        acp_kept_session.write(file, KeptSession(session.id, session.program, running.stored_turns))
        finish = await self._prompt(attempt, running.connection, session.id, text)
        running.session = KeptSession(session.id, session.program, answered)
        loop = asyncio.get_running_loop()
        loop.call_later(acp_kept_session.STORE_SECONDS, _stored, running, file, running.session)
        return finish

    async def _running(self, spec: AgentSpec) -> _Running:
        """The agent that was started before, if it is still usable, else a new one."""
        if self._starting is not None:
            running = await self._started_before(self._starting)
            if running is not None and running.is_usable(spec):
                return running
            if running is not None:
                running.close()
        self._starting = self._begin(spec)
        return await self._started(self._starting)

    async def _started_before(self, starting: _Starting) -> _Running | None:
        """None for one that was starting while the workspace was mounted, and had to do with its home."""
        was_started = starting.task.done()
        if not was_started and starting.home.is_lost():
            await starting.give_up()
            return None
        try:
            return await self._started(starting)
        except AgentError:
            if was_started:
                raise
            return None

    async def _started(self, starting: _Starting) -> _Running:
        try:
            return await starting.task
        except AgentError:
            # Tried again with the next turn: somebody may have mended it.
            self._starting = None
            raise

    def _begin(self, spec: AgentSpec) -> _Starting:
        home = _Home(_existing(_environment(spec).get("HOME", "/")))
        return _Starting(asyncio.create_task(self._start(spec, home)), home)

    async def _start(self, spec: AgentSpec, home: _Home) -> _Running:
        process = None
        try:
            line, secrets = _command(spec), self._named_secrets(spec)
            process = AgentProcess(line, home.path, _environment(spec) | secrets, list(secrets.values()))
            connection = Connection(process)
            await process.connect()
            await connection.initialize()
        except (AgentError, asyncio.CancelledError) as error:
            home.close()
            if isinstance(error, AgentError):
                error.cannot_start = True
            if process is not None:
                process.kill()
                if isinstance(error, AgentError):
                    await process.closed.wait()
            raise
        return _Running(connection, spec.options, home)

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
                running.stored_turns = kept.known_turns
                return kept
            attempt.note("the agent could not load its session: a new one begins with the record of this one")
        return KeptSession(await running.connection.new_session(folder), program)

    async def _prompt(self, attempt: Attempt, connection: Connection, session: str, text: str) -> str:
        updates = Updates(attempt)
        items = connection.prompt(session, text)
        taking = asyncio.create_task(_take(attempt, connection, updates, items))
        attempt.on_cancel = taking.cancel
        try:
            ended = await taking
        except asyncio.CancelledError:
            if not attempt.is_cancelled:
                raise
            # The supervisor waits for this no longer than the grace; then it kills the cell.
            await connection.cancel(session)
            raise AgentError("it was cancelled by an interrupt", "send the message again") from None
        if error := ended.exception():
            # The outcome of its open calls is unknown: nothing is recorded as their result.
            raise await connection.fault(error)
        await updates.close()
        response = ended.result()
        if response.usage is not None:
            attempt.spend(_usage(attempt.assign, response.usage))
        return _FINISHES.get(response.stop_reason, response.stop_reason)


def _usage(assign: Assign, told: schema.Usage) -> Usage:
    """The tokens of a prompt; with a cost where the settings name the agent's model, which has prices."""
    cached = (told.cached_read_tokens or 0) + (told.cached_write_tokens or 0)
    usage = Usage(told.input_tokens + cached, told.output_tokens + (told.thought_tokens or 0))
    return usage.at(assign.model) if assign.agent.options.get("model") else usage


async def _take(
    attempt: Attempt, connection: Connection, updates: Updates, items: "asyncio.Queue[Item]"
) -> "asyncio.Task[schema.PromptResponse]":
    """Handles what the agent reports and asks until its prompt has ended; returns that end."""
    approvals = Approvals(attempt.assign.agent, attempt)
    while not isinstance(item := await items.get(), PromptEnded):
        if isinstance(item, PermissionAsked):
            await acp_permission.answer(attempt, approvals, updates, item)
        else:
            await updates.take(item)
        connection.taken()
    return item.response


def _stored(running: _Running, file: Path, session: KeptSession) -> None:
    """A later process need not be told of these turns, unless this one has ended meanwhile."""
    if running.connection.is_open:
        running.stored_turns = session.known_turns
        acp_kept_session.write(file, session)


def _existing(folder: str) -> str:
    return folder if os.path.isdir(folder) else "/"


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


def _environment(spec: AgentSpec) -> dict[str, str]:
    return environment(os.environ) | _texts(spec, "env")


def _texts(spec: AgentSpec, name: str) -> dict[str, str]:
    value = spec.options.get(name) or {}
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}
