"""The gates before AIAgent's tools and its requests to the model, through the hooks of its plugins.

| hook | here |
| --- | --- |
| `pre_tool_call` | the rules of the agent. A call that is denied gets a record, and the model the reason |
| middleware `llm_execution` | the budgets, before each request; afterwards the tokens are counted |

They hold for every AIAgent of the process, sub-agents included. hermes-agent goes on after an Exception of a
hook, so a gate that cannot decide raises a BaseException, which ends the turn. A reload of its plugins drops
the hooks: they are set again for each turn, and a tool that has not passed the gate does not begin.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ipc.bounds import NAME_CHARACTERS_MAX, TEXT_CHARACTERS_MAX
from ipc.messages import ModelEndpoint, ToolClass, Usage
from worker import spending
from worker.agents.context import Host
from worker.approvals import CHOICES, Approvals, denial, is_consent

# Tools that change nothing; a repetition of any other one may do harm.
_PURE = frozenset(
    {"clarify", "read_file", "search_files", "session_search", "skill_view", "skills_list", "project_list"}
)


class Unrecorded(BaseException):
    """A tool call has no record, or no gate could decide about it, so it must not run."""


class Gate:
    """The gates of one turn. `normalize` reads the usage of a reply, whatever the API."""

    def __init__(self, host: Host, normalize: Callable[..., Any]) -> None:
        self._host = host
        self._normalize = normalize
        assign = host.assign
        self._approvals = Approvals(assign.agent, host.attempt)
        self._models: tuple[ModelEndpoint, ...] = (assign.model, *assign.fallback)
        # Calls that the rules allow, and commands of them that a person has approved.
        self._passed: set[str] = set()
        self._approved: set[str] = set()

    def install(self, plugins: Any) -> None:
        """Sets the hooks in place of those of an earlier turn."""
        for hooks, name, hook in (
            (plugins._hooks, "pre_tool_call", self.judge),
            (plugins._middleware, "llm_execution", self.ask_model),
        ):
            others = [each for each in hooks.get(name, ()) if not isinstance(_owner(each), Gate)]
            # The first directive wins, and the outermost middleware sees every request.
            hooks[name] = [hook, *others]

    def judge(
        self, *, tool_name: str, args: Mapping[str, Any], tool_call_id: str = "", **more: object
    ) -> dict[str, str] | None:
        """Returns None for a call that may begin, else a directive to block it."""
        try:
            written = written_arguments(args)
            refusal = self._host.wait(lambda: self._refusal(tool_name, args, written))
        except Exception as error:
            raise Unrecorded from error
        if refusal:
            return {"action": "block", "message": refusal}
        self._passed.add(tool_call_id)
        return None

    async def _refusal(self, tool: str, given: Mapping[str, Any], written: str) -> str:
        """Returns why the call is denied, and records it then; "" when it is allowed."""
        verdict = self._approvals.verdict_of(tool, given)
        refusal = verdict.text
        if verdict.decision == "ask":
            answer = await self._host.attempt.question("approve", verdict.text, CHOICES, holds=True)
            refusal = "" if is_consent(answer) else denial(answer)
            if not refusal:
                self._approved.add(str(given.get("command", "")))
        if refusal:
            await self._host.refuse(name_of(tool), written, class_of(tool), refusal)
        return refusal

    def has_passed(self, call: str) -> bool:
        return call in self._passed

    def is_approved(self, command: str) -> bool:
        """Returns whether a rule has asked a person about this very command, who approved it."""
        return command in self._approved

    def ask_model(
        self,
        *,
        request: Any,
        next_call: Callable[[Any], Any],
        model: str = "",
        base_url: str = "",
        provider: str = "",
        api_mode: str = "",
        **more: object,
    ) -> Any:
        """Makes a request when the budgets allow it, and counts its tokens."""
        try:
            self._host.wait(lambda: spending.check(self._host.attempt, holds=True))
        except Exception as error:
            raise Unrecorded from error
        reply = next_call(request)
        usage = getattr(reply, "usage", None)
        if usage is not None:
            counted = self._normalize(usage, provider=provider, api_mode=api_mode)
            self._spend(Usage(counted.prompt_tokens, counted.output_tokens), model, base_url)
        return reply

    def _spend(self, usage: Usage, model: str, base_url: str) -> None:
        """The price is that of the model of the settings that answered."""
        for endpoint in self._models:
            if (endpoint.name, endpoint.base_url.rstrip("/")) == (model, base_url.rstrip("/")):
                usage = usage.at(endpoint)
        self._host.wait(lambda: self._host.spend(usage, model))


def name_of(tool: str) -> str:
    return tool[:NAME_CHARACTERS_MAX] or "unnamed"


def class_of(tool: str) -> ToolClass:
    return "pure" if tool in _PURE else "unsafe"


def written_arguments(arguments: Mapping[str, Any]) -> str:
    """Returns the arguments as they are recorded."""
    written = json.dumps(arguments, ensure_ascii=False, default=str)
    if len(written) > TEXT_CHARACTERS_MAX:
        return json.dumps({"left out": f"{len(written)} characters"})
    return written


def _owner(hook: object) -> object:
    return getattr(hook, "__self__", None)
