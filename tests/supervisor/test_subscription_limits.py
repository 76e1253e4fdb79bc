"""How many subscriptions a client may have, and for how long one may be stuck."""

from pathlib import Path

from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_subscriptions import FLOOD, REQUEST, Stage, play
from tests.waiting import soon


def test_a_client_has_two_thousand_subscriptions_at_most(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        for number in range(2000):
            assert stage.subscriptions.has_room(stage.client())
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", 0)
        assert not stage.subscriptions.has_room(stage.client())

    play(tmp_path, act, HeldAsking())


def test_a_reader_may_be_stuck_for_half_a_minute_at_most(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        for number in range(1, 13):
            stage.happens(number, text=FLOOD)
        (subscriber,) = await soon(lambda: stage.subscriptions._behind)
        await soon(lambda: subscriber.was_refused)
        subscriber.stuck_seconds = 29.0
        stage.subscriptions._try_full()
        assert not stage.is_empty
        subscriber.stuck_seconds = 30.1
        stage.subscriptions._try_full()
        assert stage.is_empty

    play(tmp_path, act)
