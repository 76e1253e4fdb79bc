"""Instructions of the settings: they follow the system prompt of the built-in agent."""

import asyncio

from ipc.messages import AgentSpec
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.model import Model


def test_instructions_follow_the_system_prompt(fake: FakeModel) -> None:
    async def scene() -> None:
        desk, model = Desk(), Model()
        options = {"system": "Be brief.", "instructions": "Rhyme."}
        agent = Builtin(AgentSpec("default", "builtin", options), model)
        await Attempt(assign(fake.base_url), desk.outbox).run(agent.answer)
        await model.close()

    asyncio.run(scene())
    assert fake.requests()[0].messages[0]["content"] == "Be brief.\n\nRhyme."
