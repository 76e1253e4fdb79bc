"""The models of one attempt, in the order of their use: one that cannot answer is passed over.

A model is passed over before any text of its reply was streamed, since text cannot be taken back. The next
one then answers for the rest of the attempt. The next attempt begins with the first model again, unless the
supervisor knows that it is away. worker/model_faults.py says for each fault whether and when that is done.

| fault | the next model is asked |
| --- | --- |
| too many requests (429), an error of the server (5xx) | after one retry |
| no connection, or one that was cut | after all retries |
| the key refused (401, 403), no quota, no such model (404) | at once |
| a conversation that is too long, or no answer for two minutes | at once |
| anything else | never: the request itself is at fault |
"""

from collections.abc import Sequence

from worker import spending
from worker.attempt import Attempt
from worker.errors import ModelError
from worker.model import ChatMessage, Model, OnText, Reply


class ModelChain:
    """Asks the present model, and the next one when it cannot answer."""

    def __init__(self, model: Model, attempt: Attempt) -> None:
        self._model = model
        self._attempt = attempt
        self._left = [attempt.assign.model, *attempt.assign.fallback]

    @property
    def context_tokens(self) -> int:
        """The context of the model that is asked next; 0 when it is unknown."""
        return self._left[0].context_tokens

    async def answer(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatMessage], on_text: OnText
    ) -> Reply:
        await spending.check(self._attempt)
        while True:
            endpoint, has_fallback = self._left[0], len(self._left) > 1
            try:
                reply = await self._model.answer(
                    endpoint, messages, tools, on_text, self._attempt.note, has_fallback
                )
            except ModelError as error:
                if not error.falls_back:
                    raise
                await self._pass_over(error)
            else:
                self._attempt.spend(reply.usage.at(endpoint), endpoint.name)
                return reply

    async def _pass_over(self, error: ModelError) -> None:
        del self._left[0]
        if error.outage:
            # Before the note: the first frame of a probe that is no failure means that it was answered.
            await self._attempt.model_away(error)
        self._attempt.note(f"{error.error}; {self._left[0].name} answers now")
