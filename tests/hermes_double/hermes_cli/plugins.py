"""Hooks and middleware, called as the original does: an Exception of a hook is ignored."""

from collections.abc import Callable
from typing import Any


class Plugins:
    def __init__(self) -> None:
        self._hooks: dict[str, list[Callable[..., Any]]] = {}
        self._middleware: dict[str, list[Callable[..., Any]]] = {}

    def block(self, name: str, arguments: dict[str, Any], call: str) -> str:
        """Returns the message of the first hook that blocks the call."""
        for hook in self._hooks.get("pre_tool_call", ()):
            try:
                given = hook(tool_name=name, args=arguments, tool_call_id=call, session_id="")
            except (RuntimeError, TypeError, ValueError):
                continue
            if isinstance(given, dict) and given.get("action") == "block":
                return str(given["message"])
        return ""

    def execute(self, send: Callable[[Any], Any], **request: Any) -> Any:
        """Sends a request through the first middleware."""
        for middleware in self._middleware.get("llm_execution", ()):
            return middleware(request={}, next_call=send, provider="custom", **request)
        return send({})


_plugins = Plugins()


def get_plugin_manager() -> Plugins:
    return _plugins
