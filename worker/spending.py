"""Asks a person before the turn goes on beyond a budget of the settings.

The question names how many times the budget was reached, not what was used exactly: so the attempt that goes
on after the answer asks the same question, and finds the answer. A yes allows the same amount again.
"""

from ipc.messages import BudgetLimit
from worker.attempt import Attempt
from worker.errors import AgentError

_YES = "yes"
_CHOICES = (_YES, "no")


async def check(attempt: Attempt, *, holds: bool = False) -> None:
    """Returns when the turn may use more; call it before that. `holds` as in `Attempt.question`."""
    for limit in attempt.assign.limits:
        times = limit.times_reached(attempt.usage)
        if times > limit.allowed:
            answer = await attempt.question("approve", limit.question(times), _CHOICES, holds=holds)
            if answer != _YES:
                raise _not_to_go_on(limit, times)


def _not_to_go_on(limit: BudgetLimit, times: int) -> AgentError:
    return AgentError(
        f"it reached {limit.amount(times)}, and the answer was not to go on",
        f"raise {limit.setting} in hermes.toml, or send the message again and answer yes",
    )
