"""The tokens of an attempt, and the model that used them."""

import pytest

from ipc.messages import Asked, Failed, ToolStarted, Usage
from tests.worker.test_attempt import answered
from worker.attempt import Attempt
from worker.errors import AgentError, HumanNeeded


@pytest.mark.parametrize(
    "end", [AgentError("it broke", "mend it"), HumanNeeded("approve", "Go on?", (), "c")], ids=["fail", "ask"]
)
def test_every_frame_with_tokens_names_the_model_that_used_them(end: Exception) -> None:
    async def answer(attempt: Attempt) -> str:
        attempt.spend(Usage(1, 0), "first")
        attempt.spend(Usage(0, 2), "substitute")
        await attempt.begin_tool("shell", "unsafe", "c", "{}")
        raise end

    frames = [frame for frame in answered(answer).frames if isinstance(frame, ToolStarted | Asked | Failed)]
    assert [(frame.usage, frame.model) for frame in frames] == [(Usage(1, 2), "substitute")] * 2
