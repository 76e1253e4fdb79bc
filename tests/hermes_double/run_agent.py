"""AIAgent with the callbacks of hermes-agent 0.19, in the same order and threads.

A message that begins with one of these words has an effect; any other one is put to the model, over HTTP:
touch, remove, clarify: a tool with the rest as its argument; quiet: an answer that is not streamed; fail;
empty; recite: the roles of the history; thread: leaves one behind; late: a steer that no tool takes in;
switched: whether its model was chosen before the turn; reload: a touch after its plugins were reloaded.
"""

import json
import logging
import os
import shutil
import threading
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hermes_logging
from hermes_cli.plugins import get_plugin_manager
from tools import terminal_tool

# As the original: found when the module is imported.
_hermes_home = Path(os.environ["HERMES_HOME"])


class AIAgent:
    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str,
        provider: str,
        api_mode: str,
        platform: str,
        session_db: object,
        skip_memory: bool,
        skip_context_files: bool,
        quiet_mode: bool,
        stream_delta_callback: Callable[[str | None], None],
        tool_start_callback: Callable[..., None],
        tool_complete_callback: Callable[..., None],
        clarify_callback: Callable[..., str],
        tool_progress_callback: Callable[..., None],
        status_callback: Callable[..., None],
    ) -> None:
        assert (provider, api_mode, session_db) == ("custom", "chat_completions", None)
        hermes_logging.setup_logging(_hermes_home)
        self._model, self._base_url = model, base_url
        self._say = stream_delta_callback
        self._tool_start = tool_start_callback
        self._tool_complete = tool_complete_callback
        self._clarify = clarify_callback
        self._steers: list[str] = []
        self._switched_in = 0
        self._fallback_chain: list[dict[str, str]] = []
        self._api_max_retries = 3
        self.ephemeral_system_prompt: str | None = None

    def switch_model(self, model: str, provider: str, *, api_key: str, base_url: str, api_mode: str) -> None:
        assert (provider, api_mode, bool(api_key)) == ("custom", "chat_completions", True)
        self._model, self._base_url = model, base_url
        self._switched_in = threading.get_ident()

    def steer(self, text: str) -> bool:
        self._steers.append(text)
        return True

    def close(self) -> None: ...

    def run_conversation(
        self, text: str, conversation_history: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        logging.getLogger(__name__).warning("asked: %s", text)
        print("asked:", text)
        word, _, rest = text.partition(" ")
        history = [str(message["role"]) for message in conversation_history]
        result: dict[str, Any] = {"failed": False, "messages": [*conversation_history]}
        match word:
            case "reload":
                get_plugin_manager()._hooks.clear()
                self._say(final := self._run_tool("touch", rest))
            case "touch" | "remove" | "clarify":
                self._say("Well.")
                final = self._run_tool(word, rest)
                self._say(f"\n\n{final}")
            case "fail":
                result |= {"failed": True, "error": "HTTP 401: no such key"}
                final = "I could not."
            case "empty" | "quiet":
                final = rest
            case "recite":
                final = f"{', '.join(history)}; {self.ephemeral_system_prompt}; {_hermes_home.name}"
            case "switched":
                final = "now" if self._switched_in == threading.get_ident() else "before"
            case "thread":
                threading.Thread(target=threading.Event().wait, daemon=True).start()
                final = "One is left."
            case "late":
                result["pending_steer"] = "quiet also this"
                self._say(final := "First.")
            case _:
                final = self._ask_model(text)
        return result | {"final_response": final}

    def _run_tool(self, name: str, argument: str) -> str:
        arguments = {"argument": argument}
        if refused := get_plugin_manager().block(name, arguments, "theirs"):
            return f"Blocked: {refused}"
        try:
            self._tool_start("theirs", name, arguments)
        except (RuntimeError, TypeError, ValueError):
            logging.getLogger(__name__).debug("a callback has raised")
        self._say(None)
        terminal_tool._start_cleanup_thread()
        output, error = "", ""
        if name == "touch":
            Path(argument).touch()
        elif name == "clarify":
            output = self._clarify(argument, ["red", "blue"])
        elif terminal_tool.may_run(f"rm -rf {argument}"):
            shutil.rmtree(argument)
        else:
            error = "denied"
        self._tool_complete("theirs", name, arguments, json.dumps({"output": output, "error": error}))
        steers, self._steers = self._steers, []
        return " ".join(["Done.", *filter(None, (output, error)), *steers])

    def _ask_model(self, text: str) -> str:
        """The first model that answers does; each request passes the middleware."""
        said: list[str] = []

        def send(_: object) -> SimpleNamespace:
            said.append(self._request(text))
            return SimpleNamespace(usage=SimpleNamespace(prompt_tokens=10, completion_tokens=1))

        for fallback in ({}, *self._fallback_chain):
            self._model = fallback.get("model", self._model)
            self._base_url = fallback.get("base_url", self._base_url)
            try:
                get_plugin_manager().execute(send, model=self._model, base_url=self._base_url)
            except OSError:
                continue
            break
        return "".join(said)

    def _request(self, text: str) -> str:
        body = {"model": self._model, "stream": True, "messages": [{"role": "user", "content": text}]}
        request = urllib.request.Request(
            f"{self._base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        said = ""
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        if word := choice["delta"].get("content"):
                            said += word
                            self._say(word)
        return said
