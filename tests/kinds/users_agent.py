"""An agent of a user for the scenarios: the first word of the message says what it does with the rest."""

import subprocess
import threading
from typing import Any


def agent(context: Any) -> Any:
    word, _, rest = context.text.partition(" ")
    match word:
        case "stream":
            while True:
                yield "word "
                threading.Event().wait(0.01)
        case "run":
            yield _run(context, rest)
        case "approve":
            yield _run(context, rest) if context.approve(f"May it run?\n{rest}") else "denied by the user"
        case "ask":
            yield context.ask(rest, ("red", "blue"))
        case "recall":
            yield context.history[0].messages[0]
        case "spend":
            context.spend(int(rest), 0)
            yield f"{rest} tokens are used."
        case _:
            yield rest


def _run(context: Any, command: str) -> str:
    if any(tool.result is None for attempt in context.earlier for tool in attempt.tools):
        return "outcome unknown"
    call = context.tool_started("run", {"command": command})
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    context.tool_finished(call, done.stdout, ok=done.returncode == 0)
    return "\n".join(["Done.", done.stdout, *context.steers()])
