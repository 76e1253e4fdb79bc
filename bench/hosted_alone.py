"""hermes-agent by itself, as its own gateway runs it: one AIAgent in threads, stopped by its flag.

`PYTHON bench/hosted_alone.py BASE_URL`, with HERMES_HOME set, in an interpreter that has hermes-agent. Each
line on standard input is a JSON list: `["say", TEXT]` begins a turn, `["stop", TEXT]` sets the flag and
begins the next turn, with this text, when the first has returned. Each line on standard output is a word:
`ready`, `text` for the first text of a turn, `tool` for the start of one, `end` for the end of a turn.
Imports nothing of ours.
"""

import importlib
import json
import os
import sys
import threading
from typing import Any

_lines = os.fdopen(os.dup(1), "w", buffering=1)


def tell(word: str) -> None:
    _lines.write(f"{word}\n")


class Alone:
    def __init__(self, base_url: str) -> None:
        self._is_told = True
        self._history: list[dict[str, Any]] = []
        self._running: threading.Thread | None = None
        self._agent = importlib.import_module("run_agent").AIAgent(
            model="fake",
            base_url=base_url,
            api_key="none",
            provider="custom",
            api_mode="chat_completions",
            platform="api",
            session_db=None,
            skip_memory=True,
            skip_context_files=True,
            quiet_mode=True,
            stream_delta_callback=self._heard,
            tool_start_callback=lambda *_: tell("tool"),
            tool_progress_callback=lambda *_, **__: None,
            status_callback=lambda *_, **__: None,
        )

    def say(self, text: str) -> None:
        self._running = threading.Thread(target=self._turn, args=(text, self._running), daemon=True)
        self._running.start()

    def stop(self, text: str) -> None:
        self._agent.interrupt(text)
        self.say(text)

    def _turn(self, text: str, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        self._is_told = False
        self._history = self._agent.run_conversation(text, conversation_history=self._history)["messages"]
        tell("end")

    def _heard(self, text: str | None) -> None:
        if text and text.strip() and not self._is_told:
            self._is_told = True
            tell("text")


def main(base_url: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # it prints
    alone = Alone(base_url)
    tell("ready")
    for line in sys.stdin:
        what, text = json.loads(line)
        {"say": alone.say, "stop": alone.stop}[what](text)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
