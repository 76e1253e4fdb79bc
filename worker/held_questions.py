"""Questions of an attempt that holds for the answer, and the answers that the turn already has.

One question is open at a time: a second one waits until the first is answered. An agent that stops waiting,
because its task was cancelled, leaves its question open; only the answer ends it.
"""

import asyncio
from dataclasses import dataclass

from ipc.messages import Answered, Asked, Assign, QuestionKind, Usage
from worker.outbox import Outbox


@dataclass(frozen=True, slots=True)
class _Open:
    """The question without an answer, by its number in the attempt."""

    hold: int
    asked: tuple[str, str]
    answer: "asyncio.Future[str]"


class HeldQuestions:
    def __init__(self, assign: Assign, outbox: Outbox) -> None:
        self._assign = assign
        self._outbox = outbox
        self._answers = {(past.kind, past.text): past.answer for past in assign.answers}
        self._number = 0
        self._open: _Open | None = None

    def known(self, kind: str, text: str) -> str | None:
        """Returns the answer that the turn has to this question."""
        return self._answers.get((kind, text))

    def answers(self, kind: str) -> dict[str, str]:
        """Returns the answers that the turn has to questions of this kind, by their texts."""
        return {text: answer for (asked, text), answer in self._answers.items() if asked == kind}

    async def ask(
        self, kind: QuestionKind, text: str, choices: tuple[str, ...], call: str, usage: Usage, model: str
    ) -> str:
        """Waits for the answer. The wait itself can be cancelled; the question stays open."""
        while (answer := self.known(kind, text)) is None:
            await self._outbox.room()
            if self._open is None:
                turn, attempt, hold = self._assign.turn, self._assign.attempt, self._number + 1
                self._outbox.post(Asked(turn, attempt, call, kind, text, choices, hold, usage, model))
                self._number = hold
                self._open = _Open(hold, (kind, text), asyncio.get_running_loop().create_future())
            await asyncio.shield(self._open.answer)
        return answer

    def answered(self, answered: Answered) -> None:
        """Takes the answer to the open question; any other one is late or foreign, and has no effect."""
        found = self._open
        if found is not None and found.hold == answered.hold:
            self._open = None
            self._answers[found.asked] = answered.text
            found.answer.set_result(answered.text)
