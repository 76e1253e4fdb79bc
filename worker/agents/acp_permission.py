"""Permissions that an ACP agent asks for."""

from collections.abc import Iterable

from acp import schema

from worker.agents.acp_connection import PermissionAsked
from worker.agents.acp_updates import Updates
from worker.attempt import Attempt
from worker.tools import Report

# The narrowest first: a decision of this host holds for one call.
_ALLOWING = ("allow_once", "allow_always")
_REJECTING = ("reject_once", "reject_always")
DENIED = "denied: this call needs a permission, and no rule or person has given it"


async def answer(attempt: Attempt, updates: Updates, asked: PermissionAsked) -> None:
    """Records the call, decides, and answers the agent."""
    call = await updates.begin(asked.call)
    attempt.note(f"denied: {call.title or call.kind}", call=call.id)
    await updates.end(call, Report(DENIED, ok=False))
    if not asked.answer.done():
        asked.answer.set_result(option(asked.options, _REJECTING))


def option(options: Iterable[schema.PermissionOption], kinds: Iterable[str]) -> str | None:
    """The id of the first option of these kinds; None when there is none."""
    by_kind = {each.kind: each.option_id for each in reversed(list(options))}
    return next((by_kind[kind] for kind in kinds if kind in by_kind), None)
