"""An AIAgent of hermes-agent, and the turns that it answers, with the history and the records of the host.

| AIAgent | here |
| --- | --- |
| its database of sessions, its memory | the history in the journal |
| `stream_delta_callback` | text of the answer |
| hooks of plugins | rules about its tools, budgets before its requests (hermes_gate.py) |
| `tool_start_callback` | the record of a tool call; the tool waits until that is durable |
| `clarify_callback`, the approval callback | questions to a person |
| `steer` | messages that come during a turn, taken in after a tool |
| `interrupt` | not used: the process is killed |

AIAgent ignores an Exception of a callback and runs the tool; a BaseException ends its turn. An approval
callback is set in every thread that runs a turn: without one AIAgent runs `rm -rf` without a question.
"""

import importlib
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipc.bounds import SENTENCE_CHARACTERS_MAX, sentence
from ipc.messages import AgentSpec, ModelEndpoint
from worker.agents.chat_messages import GO_ON, conversation
from worker.agents.context import Context, Host
from worker.agents.hermes_gate import Gate, Unrecorded, class_of, name_of, written_arguments
from worker.agents.hermes_home import NOWHERE, Home
from worker.errors import AgentError
from worker.rules import Rules

_HISTORY_CHARACTERS_MAX = 200_000
_CHOICES_MAX = 20
# Of a model that fails, where another one can be asked: as the built-in agent does.
_REQUESTS_BEFORE_FALLBACK = 2


def imported(name: str) -> Any:
    """Returns a module of hermes-agent; AgentError when the interpreter has none."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise AgentError(
            f"{sys.executable} has no hermes-agent that can be used ({type(error).__name__}: {error.name})",
            f"run `{sys.executable} -m pip install hermes-agent`, or correct python in its table",
        ) from None


class HermesTurns:
    """One AIAgent. With `has_own_model` the settings in its home name the model, instead of the host."""

    def __init__(self, home: Home, *, has_own_model: bool = False) -> None:
        self._home = home
        self._has_own_model = has_own_model
        self._model = NOWHERE
        self._context: Context | None = None
        self._gate: Gate | None = None
        # Calls that have begun: theirs to ours.
        self._calls: dict[str, str] = {}
        # Text since the last tool.
        self._said = ""
        self._has_said = False
        agent = imported("run_agent").AIAgent
        model = _model_of_home(home.path) if has_own_model else _model_of_host()
        try:
            self._agent: Any = agent(
                **model,
                platform="api",
                session_db=None,
                skip_memory=not has_own_model,
                skip_context_files=True,
                quiet_mode=True,
                stream_delta_callback=self._say,
                tool_start_callback=self._start,
                tool_complete_callback=self._finish,
                clarify_callback=self._clarify,
                # Without them, it prints.
                tool_progress_callback=_ignore,
                status_callback=_ignore,
            )
        except TypeError as error:
            raise AgentError(
                f"this hermes-agent takes other arguments than 0.19 does ({type(error).__name__})",
                f"run `{sys.executable} -m pip install 'hermes-agent==0.19.*'`",
            ) from None
        _stop_logging()

    def start_kept_threads(self) -> None:
        """Starts the thread that AIAgent keeps between turns: in a worker, not before the fork.

        The first command would start it, and it would count as left behind by that turn.
        """
        getattr(imported("tools.terminal_tool"), "_start_cleanup_thread", _ignore)()

    def answer(self, host: Host, home: Path) -> None:
        """Answers the turn of the host in the calling thread; AgentError says why it could not."""
        assign = host.assign
        if home != self._home.path:
            self._home.move(home, self._agent)
        approval = imported("tools.approval")
        if not self._has_own_model:
            # Commands of the agent may write to this home, and so to the setting.
            approval._get_approval_mode = _manual
        # Both are kept for each thread.
        approval.set_hermes_interactive_context(True)
        imported("tools.terminal_tool").set_approval_callback(self._approve)
        _refuse_unknown_tools(assign.agent)
        self._context = Context(host)
        self._gate = Gate(host, imported("agent.usage_pricing").normalize_usage)
        self._gate.install(imported("hermes_cli.plugins").get_plugin_manager())
        self._calls.clear()
        self._has_said = any(past.text for past in assign.tried)
        if not self._has_own_model:
            self.use(assign.model)
            self._fall_back_to(assign.fallback)
        options = assign.agent.options
        system = "\n\n".join(options[name] for name in ("system", "instructions") if options.get(name))
        characters_max = options.get("history_characters_max") or _HISTORY_CHARACTERS_MAX
        first, *history, last = conversation(assign, system, characters_max)
        if last["role"] != "user":
            # The attempt before this one was lost behind a tool: there is nothing to say but to go on.
            history, last = [*history, last], GO_ON
        self._agent.ephemeral_system_prompt = first["content"] or None
        result = self.run(last["content"], history)
        while steer := result.get("pending_steer"):
            # It came after the last tool, and is reported as delivered.
            self._say("\n\n")
            result = self.run(steer, result["messages"])

    def run(self, text: str, history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Runs AIAgent until it has answered; AgentError when it failed."""
        self._said = ""
        result: dict[str, Any] = self._agent.run_conversation(text, conversation_history=list(history))
        for call in list(self._calls):
            self._close(call, "no result", ok=False)
        final = str(result.get("final_response") or "")
        if result.get("failed"):
            raise AgentError(
                f"hermes-agent could not answer: {_line(result.get('error') or final)}",
                "see whether its model can be reached: hermesctl doctor",
            )
        if not self._said.strip():
            self._say(final)  # it was not streamed
        return result

    def use(self, model: ModelEndpoint) -> None:
        """Has AIAgent ask this model from now on, after it has asked the model's server for its context."""
        if (model.base_url, model.name, model.api_key) == (
            self._model.base_url,
            self._model.name,
            self._model.api_key,
        ):
            return
        self._agent.switch_model(
            model.name,
            "custom",
            api_key=model.api_key or NOWHERE.api_key,
            base_url=model.base_url,
            api_mode="chat_completions",
        )
        self._model = model

    def _fall_back_to(self, models: Sequence[ModelEndpoint]) -> None:
        """AIAgent asks these models, in this order, when it cannot have an answer of its own one."""
        self._agent._fallback_chain = [
            {
                "provider": "custom",
                "model": model.name,
                "base_url": model.base_url,
                "api_key": model.api_key or NOWHERE.api_key,
            }
            for model in models
        ]
        if models:
            self._agent._api_max_retries = _REQUESTS_BEFORE_FALLBACK

    def close(self) -> None:
        """Closes the connections to the model."""
        self._agent.close()

    @property
    def said(self) -> str:
        """The text since the last tool."""
        return self._said

    def _say(self, text: str | None) -> None:
        """None marks a tool; the text after it begins with an empty line."""
        if text is None:
            self._said = ""
            return
        if not self._has_said:
            text = text.lstrip("\n")
        if not text:
            return
        self._said += text
        self._has_said = True
        if self._context is not None:
            self._context.say(text)

    def _start(self, their_call: str, name: str, arguments: Mapping[str, Any]) -> None:
        """Returns when the record of the call is durable."""
        self._said = ""
        if self._context is None:
            return
        try:
            if self._gate is None or not self._gate.has_passed(their_call):
                raise Unrecorded
            self._calls[their_call] = self._context.tool_started(
                name_of(name), written_arguments(arguments), repeat=class_of(name)
            )
        except Exception as error:
            raise Unrecorded from error

    def _finish(self, their_call: str, name: str, arguments: Mapping[str, Any], result: object) -> None:
        self._close(their_call, result if isinstance(result, str) else _summary(result), ok=_is_ok(result))
        if self._context is not None:
            for text in self._context.steers():
                self._agent.steer(text)

    def _close(self, their_call: str, result: str, *, ok: bool) -> None:
        call = self._calls.pop(their_call, None)
        if call is not None and self._context is not None:
            self._context.tool_finished(call, result, ok)

    def _clarify(self, question: str, choices: Sequence[str] | None = None, *more: object) -> str:
        if self._context is None:
            return ""
        offered = [sentence(str(each)) for each in choices or () if str(each)]
        return self._context.ask(sentence(str(question)) or "?", offered[:_CHOICES_MAX])

    def _approve(self, command: str, description: str = "", **more: object) -> str:
        """Asks a person whether a dangerous command may run, this once."""
        if self._context is None or self._gate is None:
            return "deny"
        if self._gate.is_approved(command):
            return "once"
        text = f"May hermes-agent run this ({_line(description) or 'dangerous'})?\n{command}"
        if len(text) > SENTENCE_CHARACTERS_MAX:
            # A person must see all of what is approved.
            self._context.note(f"a command of {len(command)} characters is too long to be approved: denied")
            return "deny"
        return "once" if self._context.approve(text) else "deny"


def _refuse_unknown_tools(spec: AgentSpec) -> None:
    """A rule about a tool that does not exist is a spelling mistake, and would deny nothing."""
    known = imported("tools.registry").registry.get_all_tool_names()
    if unknown := Rules.of(spec.options).without_tool(known):
        raise AgentError(
            f'a rule of [agents.{spec.name}] names "{unknown}", which is no tool of this hermes-agent',
            f"use one of {', '.join(sorted(known))}",
        )


def _stop_logging() -> None:
    """Ends the thread that writes AIAgent's log, and closes its files: it quotes people."""
    logs = imported("hermes_logging")
    logs._stop_queue_listener()
    root = logging.getLogger()
    for handler in (*root.handlers, *getattr(logs, "_queued_file_handlers", ())):
        root.removeHandler(handler)
        handler.close()
    # Without any handler, Python prints warnings.
    root.addHandler(logging.NullHandler())


def _model_of_host() -> dict[str, Any]:
    return {
        "model": NOWHERE.name,
        "base_url": NOWHERE.base_url,
        "api_key": NOWHERE.api_key,
        "provider": "custom",
        "api_mode": "chat_completions",
    }


def _model_of_home(home: Path) -> dict[str, Any]:
    """Returns the model that the settings in this home name, as hermes-agent's own programs find it."""
    imported("hermes_cli.env_loader").load_hermes_dotenv(hermes_home=home)
    model = imported("hermes_cli.config").load_config().get("model")
    table = model if isinstance(model, dict) else {"default": model}
    try:
        found = imported("hermes_cli.runtime_provider").resolve_runtime_provider(
            requested=table.get("provider")
        )
    except Exception as error:
        raise AgentError(
            f"the settings in {home} name no model that can be used ({type(error).__name__})",
            f"run `HERMES_HOME={home} hermes model`, or remove home from its table",
        ) from None
    named = ("provider", "api_mode", "base_url", "api_key")
    return {"model": str(table.get("default") or ""), **{name: found.get(name) for name in named}}


def _is_ok(result: object) -> bool:
    """Results are JSON objects, of which a failed one has an error or an exit code."""
    try:
        given = json.loads(result) if isinstance(result, str) else result
    except (ValueError, RecursionError):
        return True
    if not isinstance(given, dict):
        return True
    return (
        not given.get("error") and given.get("exit_code") in (None, 0) and given.get("success") is not False
    )


def _summary(result: object) -> str:
    """Results with pictures are no text; what they say is enough for the record."""
    if isinstance(result, Mapping):
        return str(result.get("text_summary") or result.get("text") or "[no text]")
    return str(result)


def _line(text: object) -> str:
    return " ".join(str(text or "").split())[:300]


def _manual() -> str:
    return "manual"


def _ignore(*arguments: object, **more: object) -> None:
    pass
