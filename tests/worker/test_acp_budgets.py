"""What an ACP agent uses: tokens at the prices of the model that the settings name, and calls in a loop."""

import asyncio
from pathlib import Path

import pytest

from ipc.messages import Answered, Asked, Failed, Finished, ModelEndpoint, Usage
from tests.worker.acp_host import Host, play
from tests.worker.acp_host import home as home
from tests.worker.acp_host import no_process_is_left as no_process_is_left

PRICED = ModelEndpoint("http://127.0.0.1:1/v1", "m", price_in=3, price_out=15)


@pytest.mark.parametrize(("options", "cost"), [({}, 0), ({"model": "m"}, 7 * 3 + 5 * 15)])
def test_tokens_cost_what_the_named_model_does(options: dict[str, str], cost: int) -> None:
    """Without the key the prices would be those of another model."""

    async def scene(host: Host) -> None:
        host.model = PRICED
        end = await host.end("say hello")
        assert isinstance(end, Finished)
        assert end.usage == Usage(7, 5, cost)

    play(scene, lambda: Host(**options))


@pytest.mark.parametrize(("answer", "runs"), [("yes", 3), ("no", 2)])
def test_the_third_same_call_waits_for_an_answer(home: Path, answer: str, runs: int) -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("thrice echo x >> out"))
        await host.desk.until(lambda: "Asked" in host.desk.kinds())
        asked = host.desk.last()
        assert isinstance(asked, Asked)
        assert asked.text.startswith("execute is to run 3 times in a row with the same arguments: ")
        assert (home / "out").read_text() == "x\n" * 2
        host.attempt.answered(Answered("s/1", 1, "s/1#1", 1, answer))
        end = (await turn)[-1]
        assert isinstance(end, Finished if answer == "yes" else Failed)
        assert (home / "out").read_text() == "x\n" * runs

    play(scene)


def test_a_loop_of_calls_without_permissions_is_asked_about() -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("same echo x"))
        await host.desk.until(lambda: "Asked" in host.desk.kinds())
        host.attempt.answered(Answered("s/1", 1, "s/1#1", 1, "no"))
        end = (await turn)[-1]
        assert isinstance(end, Failed)
        assert "3 times in a row" in end.error

    play(scene)
