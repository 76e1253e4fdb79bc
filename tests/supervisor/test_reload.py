"""Reload: which changes are named, and which wait for a restart; one at a time, of folders that are ours."""

import asyncio
import io
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipc.errors import PlaceError
from ipc.messages import Answer, Refused, Table
from ipc.places import find_places
from supervisor.config.fields import AFTER_RESTART, AT_ONCE, NEW_WORKERS
from supervisor.config.live import Live
from supervisor.config.reload import Reload, changes, kept
from supervisor.config.settings import Settings, load
from supervisor.containment import Containment
from supervisor.telemetry.log import Log
from tests.supervisor.fixed_clock import FixedClock
from tests.waiting import soon

MODEL = "[model]\nbase_url = 'http://127.0.0.1:9/v1'\nname = 'm'\n"
REPLACED = PlaceError("the folder was replaced", "put it back")


class Desk:
    """A file of settings, and the replies to reloads; `check` is called around each reading."""

    def __init__(self, home: Path, before: str = "") -> None:
        self._places = find_places(str(home))
        self.write(before)
        self.live = Live(load(self._places.settings_file))
        self.log = io.StringIO()
        self.replies: list[Answer] = []
        self.applied: list[Settings] = []
        self.checks: list[Callable[[], None]] = []

    def write(self, text: str) -> None:
        self._places.settings_file.write_text(text)

    def load(self, text: str) -> Settings:
        self.write(text)
        return load(self._places.settings_file)

    def run(self, story: Callable[[Reload], Awaitable[None]]) -> None:
        log = Log(FixedClock(), self.log)

        async def act() -> None:
            await story(
                Reload(
                    live=self.live,
                    check=self._check,
                    places=self._places,
                    apply=lambda old, reading: self.applied.append(self.live.settings),
                    log=log,
                    contain=Containment(log, lambda: 0.0, lambda place: None),
                )
            )

        asyncio.run(act())

    async def asked(self, reload: Reload, confirmed: bool = False) -> Answer:
        before = len(self.replies)
        reload.ask(self.replies.append, confirmed)
        await soon(lambda: len(self.replies) > before)
        return self.replies[-1]

    def reloaded(self, confirmed: bool = False) -> Answer:
        async def story(reload: Reload) -> None:
            await self.asked(reload, confirmed)

        self.run(story)
        return self.replies[-1]

    def _check(self, folder: Path) -> None:
        assert folder == self._places.config
        if self.checks:
            self.checks.pop(0)()


def fail(error: Exception) -> Callable[[], None]:
    def failing() -> None:
        raise error

    return failing


def passing() -> None: ...


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("[sessions.'a*']\nbusy = 'queue'\n", "", {'[sessions."a*"]': AT_ONCE}),
        ("", "[sessions.'a*']\nbusy = 'queue'\n", {'[sessions."a*"]': AT_ONCE}),
        (
            "[sessions.'a*']\nbusy = 'queue'\n[sessions.'*b']\nbusy = 'steer'\n",
            "[sessions.'*b']\nbusy = 'steer'\n[sessions.'a*']\nbusy = 'queue'\n",
            {"the order of [sessions]": AT_ONCE},
        ),
        ("[mcp.time]\ncommand = ['clock']\n", "", {"[mcp.time]": NEW_WORKERS}),
        ("", MODEL, {"[model]": AT_ONCE}),
        ("", "[workers]\ncell = 'sweep'\n", {"[workers] cell": AFTER_RESTART}),
    ],
    ids=["removed", "added", "order", "server", "model", "cell"],
)
def test_each_change_is_named_with_the_moment_from_which_it_applies(
    tmp_path: Path, before: str, after: str, named: dict[str, str]
) -> None:
    desk = Desk(tmp_path)
    found = changes(desk.load(before), desk.load(after))
    assert {change.key: change.applies for change in found} == named


@pytest.mark.parametrize("model", ["", MODEL], ids=["embedded", "model"])
def test_what_needs_a_restart_keeps_its_value_until_then(tmp_path: Path, model: str) -> None:
    desk = Desk(tmp_path, model)
    desk.write(model + "[workers]\ncell = 'sweep'\nfiles_max = 99\n[journal]\nurl = 'postgresql://there/x'\n")
    assert isinstance(desk.reloaded(), Table)
    (settings,) = desk.applied
    assert (settings.workers.cell, settings.workers.files_max, settings.journal.url) == ("auto", 99, None)
    old = desk.live.settings
    assert kept(old, old) == old


def test_a_model_is_removed_by_a_confirmed_reload_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, MODEL)
    desk.write("")
    refused = desk.reloaded()
    assert isinstance(refused, Refused)
    assert refused.error.endswith("has no [model] any more: the embedded demonstration would replace m")
    assert not desk.applied
    assert isinstance(desk.reloaded(confirmed=True), Table)
    assert desk.live.settings.model is None


def test_more_changes_than_an_answer_holds_are_counted_and_all_in_the_log(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("".join(f"[sessions.s{number}]\nbusy = 'queue'\n" for number in range(1005)))
    table = desk.reloaded()
    assert isinstance(table, Table)
    assert (len(table.rows), table.more) == (1001, "")
    assert table.rows[-1]["text"] == "5 more keys have changed: the log names them"
    assert desk.log.getvalue().count("settings.changed") == 1005


@pytest.mark.parametrize("checks", [[fail(REPLACED)], [passing, fail(REPLACED)]], ids=["before", "meanwhile"])
def test_a_replaced_folder_is_refused_before_and_after_it_was_read(
    tmp_path: Path, checks: list[Callable[[], None]]
) -> None:
    desk = Desk(tmp_path)
    desk.checks = list(checks)
    refused = desk.reloaded()
    assert isinstance(refused, Refused)
    assert (refused.error, refused.code) == (REPLACED.fault, "invalid")
    assert refused.hint == f"{REPLACED.hint}; the settings in force have not changed"
    assert not desk.applied


def test_one_reload_is_read_at_a_time(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    may_read = threading.Event()

    def held() -> None:
        may_read.wait()

    async def story(reload: Reload) -> None:
        desk.checks = [held]
        reload.ask(desk.replies.append, confirmed=False)
        try:
            refused = await desk.asked(reload)
        finally:
            may_read.set()
        assert isinstance(refused, Refused)
        assert refused.code == "conflict"
        await soon(lambda: len(desk.replies) == 2)
        assert isinstance(desk.replies[1], Table)

    desk.run(story)
    assert len(desk.applied) == 1


def test_after_a_reload_that_broke_the_next_one_is_carried_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.checks = [fail(ZeroDivisionError())]

    async def story(reload: Reload) -> None:
        broken = await desk.asked(reload)
        assert isinstance(broken, Refused)
        assert broken.code == "internal"
        for _ in range(2):
            assert isinstance(await desk.asked(reload), Table)

    desk.run(story)
