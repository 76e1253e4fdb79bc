"""When a new worker gets its Setup: a turn that has just begun comes first.

A worker that takes a turn is replaced by the next spare, whose set-up starts servers or builds an agent. That
takes up to a second of CPU time, just when a person waits for the first text of that turn. So a Setup waits
for a moment after each Assign, unless a turn of the agent is queued, and not for long: turns that begin all
the time keep no spare from getting ready.

    Hello ──┬── a turn of the agent is queued, or none was assigned lately ──► Setup
            └── it waits: PAUSE_SECONDS after the last Assign, WAIT_SECONDS_MAX after its Hello ──► Setup
"""

import asyncio
from collections.abc import Callable

from supervisor.clock import monotonic
from supervisor.core.state import Who

# The first text of a warm agent comes within it.
PAUSE_SECONDS = 0.5
WAIT_SECONDS_MAX = 1.0
_LOOK_AGAIN_SECONDS = 0.05


class SetupTiming:
    """`send` sends the Setup of a worker; `is_wanted` says whether a turn of an agent is queued.

    `assigned_at` returns when the last turn began.
    """

    def __init__(
        self,
        send: Callable[[Who, str], None],
        is_wanted: Callable[[str], bool],
        assigned_at: Callable[[], float],
    ) -> None:
        self._send = send
        self._is_wanted = is_wanted
        self._assigned_at = assigned_at
        self._loop = asyncio.get_running_loop()

    def asked(self, who: Who, agent: str) -> None:
        """A worker waits for its Setup."""
        self._look(who, agent, monotonic() + WAIT_SECONDS_MAX)

    def _look(self, who: Who, agent: str, at_latest: float) -> None:
        left = min(self._assigned_at() + PAUSE_SECONDS, at_latest) - monotonic()
        if left <= 0 or self._is_wanted(agent):
            self._send(who, agent)
        else:
            self._loop.call_later(min(left, _LOOK_AGAIN_SECONDS), self._look, who, agent, at_latest)
