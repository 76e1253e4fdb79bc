"""The parts of a supervisor as they are connected: by the settings of now, to folders that are checked."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipc.errors import PlaceError
from ipc.messages import Answer, Care, Refused
from ipc.places import find_places, make_private
from supervisor.config.settings import load
from supervisor.core.policy import Policy
from supervisor.journal.journal import Journal
from supervisor.process_pool import ProcessPool
from supervisor.wiring import Parts
from tests.crash.scripted_processes import PuppetPool
from tests.journal.lives import accepted
from tests.journal.test_opening import ended
from tests.services.watching import pretend
from tests.supervisor.test_clips import spoken
from tests.waiting import DEADLINE_SECONDS, soon

MODEL = 'base_url = "http://127.0.0.1:9/v1"\nname = "m"\n'
SETTINGS = f'[model]\n{MODEL}[stt]\nengine = "off"\n[gateway]\nlisten = "off"\n'
OTHER = f"""
[agents.coder]
kind = "acp"
command = ["x"]
[agents.coder.sandbox]
level = "host"
[models.fast]
{MODEL}api_key_file = "fast.key"
[mcp.time]
command = ["clock"]
"""
LONG_AGO = 1.0


class Lifecycle:
    """None of these parts ends or replaces the process."""

    def end(self, status: int) -> None:
        raise AssertionError(status)

    def fatal(self, error: BaseException) -> None:
        raise error

    def unwritable(self) -> None:
        raise AssertionError

    def reload_asked(self, reply: Callable[[Answer], None], confirmed: bool = False) -> None:
        raise AssertionError

    def hand_over_asked(self, reply: Callable[[Answer], None]) -> None:
        raise AssertionError


class Desk:
    """The parts, made and not opened, and what the worker processes are made with."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.places = find_places(str(home))
        self.settings_are(SETTINGS)
        make_private(self.places.state)
        self.journal = Journal.open(self.places.journal, self.places.lock)
        self.of_processes: dict[str, Any] = {}

    def settings_are(self, text: str) -> None:
        self.places.settings_file.write_text(text)

    def run(self, story: Callable[[Parts], Awaitable[None]]) -> None:
        def make(**given: Any) -> ProcessPool:
            self.of_processes = given
            return PuppetPool(**given)

        async def act() -> None:
            settings = load(self.places.settings_file)
            state = self.journal.load(Policy())
            parts = Parts(self.places, settings, self.journal, Lifecycle(), make, "", state, 0.0)
            parts.folders.take()
            try:
                await story(parts)
            finally:
                await parts.services.close(DEADLINE_SECONDS)
                await parts.processes.close(DEADLINE_SECONDS)

        asyncio.run(act())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "home")
    yield made
    made.journal.close()


def test_workers_are_made_by_the_settings_of_now(desk: Desk) -> None:
    async def story(parts: Parts) -> None:
        def found() -> tuple[object, ...]:
            given = desk.of_processes
            return (
                given["sandbox"]("coder").level,
                given["has_setup"]("coder"),
                [path.name for path in given["key_files"]()],
                {agent: runtime.kind for agent, runtime in given["agents"]().items()},
            )

        assert found() == ("workspace", False, [], {"default": "builtin"})
        (desk.places.config / "fast.key").write_text("k")
        desk.settings_are(SETTINGS + OTHER)
        parts.live.settings = load(desk.places.settings_file)
        agents = {"default": "builtin", "coder": "acp"}
        assert found() == ("host", True, ["fast.key"], agents)

    desk.run(story)


def test_processes_of_services_are_told_from_adopted_ones(desk: Desk) -> None:
    async def story(parts: Parts) -> None:
        others = desk.of_processes["others"]
        assert not others()
        parts.services.open()
        parts.services.change("serve", pretend("serve"))
        await soon(lambda: [row["state"] for row in parts.services.rows()] == ["ready"])
        (row,) = parts.services.rows()
        assert others() == {row["pid"]}

    desk.run(story)


def test_no_part_uses_a_folder_that_was_replaced(desk: Desk, tmp_path: Path) -> None:
    async def story(parts: Parts) -> None:
        places, replies = parts.places, list[Answer]()
        (places.clips / "clip").write_bytes(b"sound")
        assert parts.upkeep.clips.fault("clip") is None
        parts.services.open()
        for folder in (places.clips, places.logs, places.workspaces):
            folder.rename(tmp_path / folder.name)
            folder.mkdir(mode=0o700)
        os.chmod(places.state, 0o755)
        kept_clip(parts, "clip")
        assert (parts.upkeep.clips.fault("clip") or ("",))[0].startswith(f"{places.clips} is another folder")
        with pytest.raises(PlaceError, match="is another folder"):
            parts.workspaces.make("s")
        parts.upkeep.journal.request_arrived(Care("check"), replies.append)
        await soon(lambda: replies)
        assert isinstance(replies[0], Refused)
        assert "has the mode 755" in replies[0].error
        parts.services.change("serve", pretend("serve"))
        (row,) = parts.services.rows()
        assert (row["state"], row["pid"]) == ("resting", None)
        assert row["detail"].startswith(f"{places.logs} is another folder")
        others = asyncio.all_tasks()
        parts.upkeep.clips.prune()
        await soon(lambda: asyncio.all_tasks() <= others)
        assert [each.name for each in places.clips.iterdir()] == ["clip"]

    desk.run(story)


def kept_clip(parts: Parts, name: str) -> None:
    clip = parts.places.clips / name
    clip.write_bytes(b"sound")
    os.utime(clip, (LONG_AGO, LONG_AGO))


def clips_left(desk: Desk) -> set[str]:
    return {clip.name for clip in desk.places.clips.iterdir()}


def test_a_clip_goes_when_it_is_old_and_not_while_its_transcript_is_to_come(desk: Desk) -> None:
    desk.journal.commit_now([spoken("waiting", 1)])

    async def story(parts: Parts) -> None:
        for name in ("waiting", "stray"):
            kept_clip(parts, name)
        parts.upkeep.open()
        await soon(lambda: clips_left(desk) == {"waiting"})

    desk.run(story)


def test_upkeep_begins_with_the_service_and_ends_with_it(desk: Desk) -> None:
    desk.journal.commit_now(ended("old", 1))

    def left() -> tuple[set[str], bool, set[str]]:
        is_pruned = desk.journal.read.turn_story("old/1") is None
        return clips_left(desk), is_pruned, {folder.name for folder in desk.places.workspaces.iterdir()}

    async def story(parts: Parts) -> None:
        kept_clip(parts, "stray")
        for session in ("old", "s"):
            parts.workspaces.make(session)
        parts.upkeep.open()
        parts.upkeep.close()
        await asyncio.to_thread(left)
        # Behind a slice of the pruning in the journal's queue, had it begun.
        for number in (1, 2):
            await desk.journal.commit([accepted(number)])
        assert left() == ({"stray"}, False, {"old", "s"})
        parts.upkeep.open()
        await soon(lambda: left() == (set(), True, {"s"}))

    desk.run(story)


@pytest.mark.parametrize("started_by", ["terminal", "systemd"])
def test_the_address_of_the_console_is_for_terminals(
    desk: Desk, started_by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if started_by == "systemd":
        monkeypatch.setenv("NOTIFY_SOCKET", str(desk.places.state / "notify.sock"))

    spec = pretend("serve")
    spec = replace(spec, name="gateway", options=spec.options | {"address": "http://127.0.0.1:9"})

    async def story(parts: Parts) -> None:
        parts.services.open()
        parts.services.change("gateway", spec)
        await soon(lambda: [row["state"] for row in parts.services.rows()] == ["ready"])

    desk.run(story)
    assert ("In a browser: open" in capsys.readouterr().err) == (started_by == "terminal")
