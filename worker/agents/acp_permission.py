"""Permissions that an ACP agent asks for: decided by the rules, else by a person while the attempt holds.

A grant is for one call, also where the answer is `always`: the agent may keep a lasting one beyond the turn,
so the next call asks again, and the decision of the turn answers it.
"""

from collections.abc import Iterable

from acp import schema

from worker.agents.acp_connection import PermissionAsked
from worker.agents.acp_updates import Call, Updates
from worker.approvals import CHOICES, Approvals, denial, is_consent
from worker.attempt import Attempt
from worker.tools import Report

# The narrowest first.
_ALLOWING = ("allow_once", "allow_always")
_REJECTING = ("reject_once", "reject_always")


async def answer(attempt: Attempt, approvals: Approvals, updates: Updates, asked: PermissionAsked) -> None:
    """Records the call, decides, and answers the agent."""
    call = await updates.begin(asked.call)
    refusal = await _refusal(attempt, approvals, call)
    chosen = option(asked.options, _REJECTING if refusal else _ALLOWING)
    if refusal or chosen is None:
        attempt.note(f"denied: {call.title or call.kind}", call=call.id)
        await updates.end(call, Report(refusal or "the agent offered no way to allow it", ok=False))
    if not asked.answer.done():
        asked.answer.set_result(chosen)


async def _refusal(attempt: Attempt, approvals: Approvals, call: Call) -> str:
    """Returns why the call is denied; "" when it is allowed."""
    verdict = approvals.verdict_of(call.kind, call.given)
    if verdict.decision != "ask":
        return verdict.text
    answer = await attempt.question("approve", verdict.text, CHOICES, call.id, holds=True)
    return "" if is_consent(answer) else denial(answer)


def option(options: Iterable[schema.PermissionOption], kinds: Iterable[str]) -> str | None:
    """The id of the first option of these kinds; None when there is none."""
    by_kind = {each.kind: each.option_id for each in reversed(list(options))}
    return next((by_kind[kind] for kind in kinds if kind in by_kind), None)
