"""Asks a person before an agent makes the same tool call for the third time in a row.

Same means the same tool with the same arguments, over all attempts at the turn. A yes lets the call run and
the count begins again: the sixth is asked about too. The question names the number of the call: an attempt
that goes on after the answer counts the recorded calls again and finds that answer.
"""

import hashlib

from worker.attempt import Attempt
from worker.errors import AgentError

_TIMES = 3
_ARGUMENTS_CHARACTERS_MAX = 200
_YES = "yes"
_CHOICES = (_YES, "no")


class RepeatedCalls:
    """The calls of a turn until now: the last one, and how often it was made in a row."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._last = ("", "")
        self._count = 0
        assign = attempt.assign
        # A call that a person was asked about is made after the answer, and counts then.
        asked = {(answer.attempt, answer.call) for answer in assign.answers}
        for number, past in enumerate(assign.tried, assign.attempt - len(assign.tried)):
            for tool in past.tools:
                if (number, tool.call) not in asked:
                    self._add(tool.name, tool.arguments)

    async def check(self, name: str, arguments: str, *, holds: bool = False) -> None:
        """Returns when the call may be made, and counts it. `holds` as in `Attempt.question`."""
        self._add(name, arguments)
        if self._count % _TIMES:
            return
        answer = await self._attempt.question("approve", self._question(), _CHOICES, holds=holds)
        if answer != _YES:
            raise AgentError(
                f"it called {name} {self._count} times in a row with the same arguments, "
                "and the answer was not to go on",
                "say what to do in smaller steps, or ask differently",
            )

    def _add(self, name: str, arguments: str) -> None:
        self._count = self._count + 1 if (name, arguments) == self._last else 1
        self._last = (name, arguments)

    def _question(self) -> str:
        name, arguments = self._last
        if len(arguments) > _ARGUMENTS_CHARACTERS_MAX:
            # Of two calls that begin alike, a yes to one is none to the other.
            digest = hashlib.sha256(arguments.encode(errors="surrogatepass")).hexdigest()[:16]
            arguments = f"{arguments[: _ARGUMENTS_CHARACTERS_MAX - 1]}… (sha256 {digest})"
        return f"{name} is to run {self._count} times in a row with the same arguments: {arguments}. Go on?"
