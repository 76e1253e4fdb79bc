"""The gate before the tool calls of a turn: the rules, then the decisions of a person, then a question.

A person's decision holds for the turn: `yes` and `no` for the same call, `always` for all calls of the tool
that the rules ask about. The question shows the main argument whole, since a person cannot consent to what is
not shown, and tells calls apart that differ in any argument: its text is what an answer is found by.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipc.bounds import SENTENCE_CHARACTERS_MAX
from ipc.messages import AgentSpec
from worker.attempt import Attempt, clean
from worker.host_danger import danger
from worker.rules import Decision, Rules, main_argument

CHOICES = ("yes", "no", "always")
_YES, _ALWAYS = "yes", "always"


@dataclass(frozen=True)
class Verdict:
    """`text` is the question of `ask`, and the result of a call that is denied."""

    decision: Decision
    text: str = ""


_ALLOWED = Verdict("allow")


class Approvals:
    def __init__(self, spec: AgentSpec, attempt: Attempt) -> None:
        self._agent = spec.name
        self._rules = Rules.of(spec.options)
        self._attempt = attempt

    def verdict(self, tool: str, arguments: str) -> Verdict:
        """Decides about a call by the JSON of its arguments."""
        given = _object(arguments)
        # Without a JSON object no tool runs: the model gets the fault as the result.
        return _ALLOWED if given is None else self.verdict_of(tool, given)

    def verdict_of(self, tool: str, given: Mapping[str, Any]) -> Verdict:
        if harm := danger(tool, given):
            return Verdict("deny", f"denied: {harm}; it was not run")
        match self._rules.decide(tool, given):
            case "allow":
                return _ALLOWED
            case "deny":
                return Verdict("deny", f"denied by a rule of [agents.{self._agent}]; it was not run")
            case _:
                return self._decided(tool, given)

    def _decided(self, tool: str, given: Mapping[str, Any]) -> Verdict:
        question, answers = _question(tool, given), self._attempt.answers("approve")
        if any(answer == _ALWAYS and text.startswith(_title(tool)) for text, answer in answers.items()):
            return _ALLOWED
        if len(question) > SENTENCE_CHARACTERS_MAX:
            reason = "denied: it needs an approval, and is too long to be shown whole; it was not run"
            return Verdict("deny", f"{reason}. Make it shorter, in several calls or through a file.")
        if (answer := answers.get(question)) is None:
            return Verdict("ask", question)
        return _ALLOWED if answer == _YES else Verdict("deny", denial(answer))


def denial(answer: str) -> str:
    """Returns the result of a call that a person denied, in a word or in other words."""
    denied = "denied by the user; it was not run"
    return denied if answer == "no" else f"{denied}: {answer}"


def is_consent(answer: str) -> bool:
    return answer in (_YES, _ALWAYS)


def _title(tool: str) -> str:
    return f"Allow {tool}? (always: every call of {tool} in this turn)\n"


def _question(tool: str, given: Mapping[str, Any]) -> str:
    main, others = main_argument(tool, given)
    text = clean(_title(tool) + main)
    if not others:
        return text
    rest = clean(json.dumps(others, ensure_ascii=False, default=str))
    if len(text) + len(rest) + len("\nwith ") <= SENTENCE_CHARACTERS_MAX:
        return f"{text}\nwith {rest}"
    digest = hashlib.sha256(rest.encode()).hexdigest()[:16]
    return f"{text}\nwith {len(rest)} characters of other arguments, sha256 {digest}"


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None
