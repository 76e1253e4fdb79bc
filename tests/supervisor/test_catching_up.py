"""Subscriptions that are far behind, many at once: they are served in turn, and the loop is not stopped."""

import asyncio
import gc
import time
from pathlib import Path

from ipc.messages import Event
from supervisor.clients import subscriptions
from tests.journal.lives import accepted
from tests.supervisor.test_subscriptions import Stage, play
from tests.waiting import soon


def test_many_that_come_back_at_once_do_not_stop_the_loop(tmp_path: Path) -> None:
    """Five hundred with a long history: between two slices others are served, and all get on alike."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.journal.commit_now([accepted(number) for number in range(1, 1281)])
        for number in range(500):
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", 0)
        turns: list[float] = []
        # What other processes do does not count, nor what other tests have left for the collector.
        gc.disable()
        while len(turns) < 100:
            began = time.thread_time()
            await asyncio.sleep(0)
            turns.append(time.thread_time() - began)
            reader.read()
        gc.enable()
        assert max(turns) < 0.05, "a turn of the loop is a few milliseconds of work"
        assert sum(turns) > 0
        seqs = [subscriber.seq for subscriber in stage.subscriptions._behind]
        assert len(seqs) == 500
        assert max(seqs) - min(seqs) <= 2 * subscriptions._SLICE_EVENTS, "they are served in turn"

    play(tmp_path, act)


def test_all_that_come_back_at_once_are_served_to_the_end(tmp_path: Path) -> None:
    """Their client's queue takes a part of them: a retry goes on where the queue was full."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.journal.commit_now([accepted(number, text="x" * 2000) for number in range(1, 101)])
        for number in range(40):
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", 0)
        stage.happens(101)
        await soon(lambda: stage.subscriptions._full)
        await soon(lambda: len(reader.seqs()) == 40 * 101)
        for number in range(40):
            mine = [each for name, each in reader.seen if name == number.to_bytes(8)]
            assert [each.seq for each in mine if isinstance(each, Event)] == list(range(1, 102))
        assert not stage.subscriptions._behind
        assert not stage.subscriptions._due

    play(tmp_path, act)


def test_no_subscription_of_a_slow_client_waits_for_the_end_of_another(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.journal.commit_now([accepted(number, text="x" * 20_000) for number in range(1, 201)])
        for number in range(10):
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", 0)
        behind = stage.subscriptions._behind
        # Several times as much as its queue takes; it reads a little now and then.
        while min((each.seq for each in behind), default=200) < 100:
            await soon(lambda: stage.subscriptions._full or not behind)
            seqs = [each.seq for each in behind]
            assert max(seqs) - min(seqs) <= 2 * subscriptions._SLICE_EVENTS
            reader.read()
            await asyncio.sleep(0)

    play(tmp_path, act)
