"""The agent of each turn: set up once, before the first Ready, or made for every turn.

An agent with a set-up starts what lives as long as the worker: servers, a foreign process. That takes
seconds, so a spare does it before it is ready. A set-up that fails or hangs does not keep the worker from
getting ready: the first turn gets the reason, and the turn after it tries the set-up again.
"""

import asyncio
import contextlib
from collections.abc import Callable

from ipc.messages import AgentSpec, Setup
from worker import residents
from worker.agents import Agent, SetUpAgent, find_agent
from worker.attempt import print_trace
from worker.errors import AgentError, AttemptError
from worker.patience import within

# Longer than an agent waits for one of its own parts (10 s, and 18 s on a host without a free CPU), shorter
# than the supervisor waits for Ready (30 s).
SETUP_SECONDS_MAX = 20.0
BUSY_SECONDS_MAX = 27.0


class Agents:
    """Finds the agent for every turn of a worker. `find` makes an agent of that kind."""

    def __init__(
        self,
        find: Callable[[AgentSpec], Agent] = find_agent,
        seconds_max: float = SETUP_SECONDS_MAX,
    ) -> None:
        self._find = find
        self._seconds_max = seconds_max
        self._setup: Setup | None = None
        self._agent: Agent | None = None
        self._fault: AttemptError | None = None

    async def set_up(self, setup: Setup) -> AttemptError | None:
        """Returns within the time limit, whatever the agent does: the fault, which the next turn gets."""
        self._setup, self._agent = setup, None
        working = asyncio.create_task(self._made(setup))
        with contextlib.suppress(TimeoutError):
            async with within(self._seconds_max, BUSY_SECONDS_MAX):
                await asyncio.wait({working})
        if not working.done():
            # Not awaited: the agent may ignore it.
            working.cancel()
            self._fault = AgentError(
                f"the agent was not set up within {self._seconds_max:g} s",
                "send the message again",
                again=True,
            )
        elif working.cancelled():
            self._fault = AgentError(
                "the agent cancelled its own set-up", "send the message again", again=True
            )
        elif error := working.exception():
            self._fault = _fault(error)
        else:
            self._agent, fault = working.result()
            return fault
        self._fault.cannot_start = not self._fault.again
        # What a failed set-up has started ends with the next attempt.
        for pid in residents.pids():
            residents.remove(pid)
        return self._fault

    async def agent(self, spec: AgentSpec) -> Agent:
        """Returns the agent of a turn; raises the fault of its set-up."""
        setup = self._setup
        if setup is None or (spec.name, spec.kind) != (setup.agent.name, setup.agent.kind):
            return self._find(spec)
        if self._agent is None and self._fault is None:
            await self.set_up(setup)
        fault, self._fault = self._fault, None
        if self._agent is None:
            raise fault or AgentError("the agent is not set up", "send the message again", again=True)
        return self._agent

    async def _made(self, setup: Setup) -> tuple[Agent, AttemptError | None]:
        agent = self._find(setup.agent)
        fault = await agent.set_up(setup) if isinstance(agent, SetUpAgent) else None
        return agent, fault


def _fault(error: BaseException) -> AttemptError:
    if isinstance(error, AttemptError):
        return error
    print_trace(error)
    return AgentError(
        f"the agent could not be set up ({type(error).__name__})",
        "the worker's log says where: hermesctl logs",
    )
