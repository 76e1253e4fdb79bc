"""The connection to an ACP agent, through its SDK: initialised once, then sessions and prompts.

The SDK runs every incoming message as a task of its own. Updates and permission requests have an order,
so each is put into one queue in the first step of its task: those steps run in the order of the messages.
While the queue is long, nothing more is read from the agent's pipe.
"""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import acp
from acp import schema
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError

from worker.agents.acp_process import AgentProcess
from worker.errors import AgentError

# Starting a large program on a busy host takes many seconds; one that needs longer hangs.
INITIALIZE_SECONDS_MAX = 60.0
# Loading replays a whole conversation.
SESSION_SECONDS_MAX = 60.0
_QUEUE_MAX = 1000
_AUTH_REQUIRED = -32000
_WORDS_CHARACTERS_MAX = 300

# The SDK logs a message whole when it cannot handle it, through the root logger; our log must not get it.
logging.getLogger().addHandler(logging.NullHandler())

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class PermissionAsked:
    """The agent waits for `answer`: the id of an option, or None for the outcome `cancelled`."""

    call: schema.ToolCallUpdate
    options: list[schema.PermissionOption]
    answer: "asyncio.Future[str | None]" = field(compare=False)


@dataclass(frozen=True)
class PromptEnded:
    """The last item of a prompt."""

    response: "asyncio.Task[schema.PromptResponse]"


Item = Any  # an update of the SDK's schema, PermissionAsked or PromptEnded


class Connection:
    """One initialised agent. `start` makes it; it ends with its process."""

    def __init__(self, process: AgentProcess) -> None:
        self.process = process
        self._queue: asyncio.Queue[Item] = asyncio.Queue()
        # Updates of this session are kept; those that a load replays, and late ones, are dropped.
        self._listens_to = ""
        self._unanswered: set[asyncio.Future[str | None]] = set()
        self._is_cancelled = False
        self._acp = ClientSideConnection(cast("acp.Client", self), process)
        self.capabilities = schema.AgentCapabilities()
        self._ways_to_sign_in: list[str] = []

    async def initialize(self) -> None:
        """Agrees on the protocol; raises AgentError with a remedy."""
        info = schema.Implementation(name="hermes-supervisor", version="1")
        try:
            async with asyncio.timeout(INITIALIZE_SECONDS_MAX):
                met = await self._acp.initialize(acp.PROTOCOL_VERSION, schema.ClientCapabilities(), info)
        except TimeoutError:
            raise self._not_acp(f"did not answer `initialize` within {INITIALIZE_SECONDS_MAX:g} s") from None
        except (ConnectionError, OSError):
            await self._let_exit()
            raise self._not_acp(self.process.outcome()) from None
        except ValidationError:
            raise self._not_acp("answered `initialize` with something else than the protocol says") from None
        except acp.RequestError as error:
            raise self._not_acp(f"refused `initialize`: {_words(error)}") from None
        if met.protocol_version != acp.PROTOCOL_VERSION:
            raise AgentError(
                f"the agent speaks version {met.protocol_version} of the Agent Client Protocol, and this "
                f"host version {acp.PROTOCOL_VERSION}",
                "install a release of the agent that speaks it too",
            )
        self.capabilities = met.agent_capabilities or self.capabilities
        self._ways_to_sign_in = [method.name or method.id for method in met.auth_methods or ()]

    async def new_session(self, folder: str) -> str:
        made = await self._bounded(self._acp.new_session(folder, mcp_servers=[]), "session/new")
        return made.session_id

    async def restore_session(self, session: str, folder: str) -> bool:
        """Resumes or loads a session that an earlier process had; false when this agent cannot."""
        offered = self.capabilities.session_capabilities
        ways: list[Any] = []
        if offered is not None and offered.resume is not None:
            ways.append(self._acp.resume_session)
        if self.capabilities.load_session:
            ways.append(self._acp.load_session)
        for way in ways:
            try:
                async with asyncio.timeout(SESSION_SECONDS_MAX):
                    await way(cwd=folder, session_id=session, mcp_servers=[])
            except (acp.RequestError, ValidationError, TimeoutError):
                continue
            except (ConnectionError, OSError):
                return False
            return True
        return False

    def prompt(self, session: str, text: str) -> "asyncio.Queue[Item]":
        """Sends a prompt; returns the queue in which its items come, PromptEnded as the last."""
        self._drop_queue()
        self._listens_to = session
        asked = self._acp.prompt(session, [acp.text_block(text)])
        response: asyncio.Task[schema.PromptResponse] = asyncio.create_task(asked)
        response.add_done_callback(self._ended)
        return self._queue

    async def cancel(self, session: str) -> None:
        """Cancels the running prompt; returns when the agent has ended it."""
        self._is_cancelled = True
        for answer in list(self._unanswered):
            answer.set_result(None)
        await self._acp.cancel(session)
        while not isinstance(await self._queue.get(), PromptEnded):
            self.taken()

    def taken(self) -> None:
        """An item of the queue has been handled."""
        self.process.pause(self._queue.qsize() > _QUEUE_MAX)

    async def fault(self, error: BaseException) -> AgentError:
        """Returns the sentence for a failed request."""
        if isinstance(error, acp.RequestError):
            if error.code == _AUTH_REQUIRED:
                return self._sign_in_needed()
            return AgentError(f"the agent reported an error: {_words(error)}", "see the agent's own settings")
        if isinstance(error, ValidationError):
            return AgentError(
                "the agent answered with something else than the protocol says",
                "install another release of the agent",
            )
        await self._let_exit()
        return AgentError(
            f"the agent's process {self.process.outcome()}",
            "it is started again with the next turn",
            again=True,
        )

    def close(self) -> None:
        self.process.kill()

    @property
    def is_open(self) -> bool:
        return not self.process.ended.is_set()

    # --- called by the SDK: each runs to its first wait in the order of the messages ------------------------

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if session_id == self._listens_to:
            self._put(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        chosen = None
        if session_id == self._listens_to and not self._is_cancelled:
            answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            self._unanswered.add(answer)
            answer.add_done_callback(self._unanswered.discard)
            self._put(PermissionAsked(tool_call, options, answer))
            chosen = await answer
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    # --------------------------------------------------------------------------------------------------------

    def _put(self, item: Item) -> None:
        self._queue.put_nowait(item)
        self.process.pause(self._queue.qsize() > _QUEUE_MAX)

    def _ended(self, response: "asyncio.Task[schema.PromptResponse]") -> None:
        self._listens_to = ""
        if not response.cancelled():
            response.exception()  # seen: the attempt may have ended before it
        self._queue.put_nowait(PromptEnded(response))

    def _drop_queue(self) -> None:
        """Answers what an attempt has left: the agent may wait for it."""
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if isinstance(item, PermissionAsked) and not item.answer.done():
                item.answer.set_result(None)
        self.taken()

    async def _bounded(self, request: Awaitable[_Answer], name: str) -> _Answer:
        try:
            async with asyncio.timeout(SESSION_SECONDS_MAX):
                return await request
        except TimeoutError:
            raise AgentError(
                f"the agent did not answer `{name}` within {SESSION_SECONDS_MAX:g} s",
                "send it again",
                again=True,
            ) from None
        except (acp.RequestError, ValidationError, ConnectionError, OSError) as error:
            raise await self.fault(error) from None

    async def _let_exit(self) -> None:
        """A closed pipe is seen before the exit status is."""
        try:
            async with asyncio.timeout(1):
                await self.process.ended.wait()
        except TimeoutError:
            self.process.kill()

    def _not_acp(self, fault: str) -> AgentError:
        program = self.process.program
        if self.process.stray_lines and not self.process.has_spoken:
            fault = f"printed text that is no JSON, and {fault}"
        return AgentError(
            f"the agent's command {program!r} {fault}",
            "run it in a terminal: it must speak the Agent Client Protocol on stdin and stdout, "
            "as `opencode acp` does",
        )

    def _sign_in_needed(self) -> AgentError:
        ways = ", ".join(self._ways_to_sign_in)
        fault = AgentError(
            "the agent needs a sign-in" + (f" ({ways})" if ways else ""),
            "sign in with the agent's own command where its sandbox sees the result, or name the variable "
            "with its key in `env_from`",
        )
        fault.cannot_start = True
        return fault


def _words(error: acp.RequestError) -> str:
    """The agent's own words, as far as a sentence can quote them."""
    words = str(error)
    if isinstance(error.data, dict) and isinstance(error.data.get("details"), str):
        words = f"{words} ({error.data['details']})"
    return " ".join(words.split())[:_WORDS_CHARACTERS_MAX]
