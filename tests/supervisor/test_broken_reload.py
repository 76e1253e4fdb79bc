"""A reload that breaks costs itself: the next one is read."""

import asyncio
from pathlib import Path

import pytest

from ipc.messages import Answer, Refused, Table
from ipc.places import find_places
from supervisor.config.live import Live
from supervisor.config.reload import Reload
from supervisor.config.settings import load
from supervisor.containment import Containment
from supervisor.telemetry.log import Log
from tests.supervisor.fixed_clock import FixedClock
from tests.waiting import soon


def test_after_a_reload_that_broke_the_next_one_is_carried_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = find_places(str(tmp_path))
    places.settings_file.write_text("")
    log = Log(FixedClock())
    broken = [True]
    replies: list[Answer] = []

    def check(folder: Path) -> None:
        if broken.pop() if broken else False:
            raise ZeroDivisionError(folder)

    reload = Reload(
        live=Live(load(places.settings_file)),
        check=check,
        places=places,
        apply=lambda old, reading: None,
        log=log,
        contain=Containment(log, lambda: 0.0, lambda place: None),
    )

    async def story() -> None:
        reload.ask(replies.append, confirmed=False)
        await soon(lambda: len(replies) == 1)
        reload.ask(replies.append, confirmed=False)
        await soon(lambda: len(replies) == 2)

    asyncio.run(story())
    assert isinstance(replies[0], Refused)
    assert replies[0].code == "internal"
    assert isinstance(replies[1], Table)
