"""Calls of an earlier attempt that a person has approved and that have not run.

An attempt that needs an approval records the call and ends. The approval is the result of that record, so
the attempt after it makes the call again under an id of its own, before it asks the model: its record comes
before the call runs, as for any other. A later attempt finds that record, or any other after the approval,
and does not run the call once more: the model decides, as about every call that was cut off.
"""

from collections.abc import Iterator

from ipc.messages import Assign, PastAnswer, ToolTrace
from worker.approvals import is_consent
from worker.model import ToolCall

# The result of a call that waits behind one that needs an approval. After a consent it is made again.
WAITING = (
    "not run: another call of the same reply needs an approval first; "
    "if that was denied, make this call again if it still matters"
)


def approved_calls(assign: Assign) -> tuple[ToolCall, ...]:
    """Returns the call that the last answer approves, and those that waited behind it."""
    answer = next((past for past in reversed(assign.answers) if past.call), None)
    if answer is None or not _is_approval(answer) or not is_consent(answer.answer):
        return ()
    past = list(_numbered(assign))
    if any(number > answer.attempt for number, _ in past):
        return ()
    tools = [tool for number, tool in past if number == answer.attempt]
    asked = [tool for tool in tools if tool.call == answer.call]
    waiting = [tool for tool in tools if tool.result == WAITING and not tool.ok]
    return tuple(ToolCall("", tool.name, tool.arguments) for tool in (*asked, *(waiting if asked else ())))


def unfinished_call(assign: Assign) -> tuple[ToolTrace, tuple[str, ...]] | None:
    """Returns the call that the last attempt has asked about, with the answers to its questions so far.

    An attempt begins with the call that the one before it has asked about. Another call that is the same has
    questions of its own.
    """
    asked, answers = clarified_calls(assign), list[str]()
    last = asked.get(assign.attempt - 1)
    if last is None:
        return None
    for number, past in zip(range(assign.attempt - 1, -1, -1), reversed(assign.tried), strict=False):
        call = asked.get(number)
        if call is None or (call.name, call.arguments) != (last.name, last.arguments):
            break
        answers.insert(0, call.result or "")
        if call != past.tools[0]:
            break
    return last, tuple(answers)


def clarified_calls(assign: Assign) -> dict[int, ToolTrace]:
    """Returns the calls that ended an attempt with a question about something else than a consent.

    Each is at the number of its attempt, of which each has one at most.
    """
    asked = {(past.attempt, past.call) for past in assign.answers if past.call and not _is_approval(past)}
    return {number: tool for number, tool in _numbered(assign) if (number, tool.call) in asked}


def _is_approval(answer: PastAnswer) -> bool:
    return answer.kind == "approve"


def _numbered(assign: Assign) -> Iterator[tuple[int, ToolTrace]]:
    """The calls of earlier attempts with the number of their attempt; the last attempt is the one before."""
    for number, past in enumerate(assign.tried, assign.attempt - len(assign.tried)):
        yield from ((number, tool) for tool in past.tools)
