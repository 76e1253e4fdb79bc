"""Fetches outputs of tools: an event reports the end of a call, the journal has its output.

An output is fetched when tools are unfolded and its turn is in view, a few at a time, and dropped when tools
are folded again: a long chat may have megabytes of them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from hermesctl.chat.turn import Tool, Turn
from ipc.messages import Answer, Request, Show, Table

# Open requests; the next ones are sent when these are answered.
_ASKED_MAX = 8


class Ask(Protocol):
    def __call__(self, request: Request, then: Callable[[Answer], None]) -> None: ...


class Outputs:
    """`ask` posts a request and calls back with its answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._asked = 0

    def want(self, turns: Iterable[Turn]) -> None:
        """Fetches the missing outputs of these turns.

        Called at every drawing, so a repetition must be cheap.
        """
        for turn in turns:
            for attempt, tool in turn.tools():
                if self._asked >= _ASKED_MAX:
                    return
                if tool.state in ("ok", "failed") and not tool.is_fetched:
                    self._fetch(turn, attempt, tool)

    def ask_again(self, turns: Iterable[Turn]) -> None:
        """Marks outputs as missing whose requests the previous connection left unanswered."""
        for turn in turns:
            for _, tool in turn.tools():
                tool.is_fetched = tool.output is not None

    def forget(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            for _, tool in turn.tools():
                tool.is_fetched, tool.output = False, None

    def _fetch(self, turn: Turn, attempt: int, tool: Tool, after: str = "") -> None:
        """Pages begin with the latest attempt; reads pages until it finds the call of this attempt."""
        tool.is_fetched = True
        self._asked += 1

        def answered(answer: Answer) -> None:
            self._asked -= 1
            if not isinstance(answer, Table):
                return
            if (row := _row_of(answer, attempt)) is not None:
                tool.arguments = str(row.get("arguments") or "")
                tool.output = str(row.get("result") or "")
                turn.version += 1
            elif answer.more:
                self._fetch(turn, attempt, tool, answer.more)

        self._ask(Show("output", id=turn.id, call=tool.call, after=after), answered)


def _row_of(answer: Table, attempt: int) -> dict[str, Any] | None:
    """Returns the call of this attempt: a later attempt may have made a call of the same name."""
    return next((row for row in answer.rows if row.get("attempt") == attempt), None)
