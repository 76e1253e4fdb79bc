"""The reserve on a full disk, and why no message is accepted."""

import asyncio
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ipc.places import Places, find_places
from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.decider import Trouble
from supervisor.host import disk_space as disk_space_module
from supervisor.host.disk_space import RESERVE_BYTES, DiskSpace, is_there, keep
from supervisor.host.folder_identity import Folders
from supervisor.journal.errors import JournalUnwritable
from supervisor.telemetry.log import Log
from tests.no_containment import uncontained
from tests.waiting import DEADLINE_SECONDS, soon


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return find_places(str(tmp_path / "home"))


_ON_A_SMALL_DISK = """
import os, sys
from pathlib import Path
from supervisor.host.disk_space import RESERVE_BYTES, is_there, keep
folder = Path(sys.argv[1])
reserve, filler = folder / "reserve", folder / "filler"
def fill(left):
    room = os.statvfs(folder)
    with filler.open("ab") as file:
        file.write(bytes(max(0, room.f_bavail * room.f_frsize - left)))
told = [keep(reserve, False), is_there(reserve), keep(reserve, True)]
fill(2 * 4096)
told += [keep(reserve, False), is_there(reserve), keep(reserve, True), reserve.exists()]
# The reserve has gone: it comes back neither while commits wait nor where it would take the last room.
told += [keep(reserve, True), keep(reserve, False), reserve.exists(), list(folder.iterdir()) == [filler]]
filler.unlink()
told += [keep(reserve, True), reserve.exists(), keep(reserve, False), is_there(reserve)]
print(told)
"""


def test_the_reserve_is_given_up_on_a_full_disk_while_commits_wait_and_made_again_later(
    tmp_path: Path,
) -> None:
    mounted = f'mount -t tmpfs -o size=8m none {tmp_path} && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mounted, "sh", sys.executable, "-c", _ON_A_SMALL_DISK]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip("no user namespace to mount a small disk in")
    kept = [True, True, True, True, True]
    given_up = [False, False, False, False, False, True]
    made_again = [False, False, True, True]
    assert done.stdout == f"{[*kept, *given_up, *made_again]}\n", done.stderr


def test_a_reserve_is_private_and_whole(tmp_path: Path) -> None:
    reserve = tmp_path / "reserve"
    reserve.write_bytes(b"too short")
    assert not is_there(reserve)
    assert keep(reserve, False)
    assert reserve.stat().st_size == RESERVE_BYTES
    assert reserve.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["reserve"]


def test_a_reserve_that_cannot_be_written_is_missing_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "reserve.part").symlink_to(tmp_path / "elsewhere")
    assert not keep(tmp_path / "reserve", False)
    assert os.listdir(tmp_path) == []


def disk_space(places: Places) -> tuple[DiskSpace, Any, io.StringIO, list[str]]:
    written, waits = io.StringIO(), list[str]()
    log = Log(Clock(), written)
    folders = Folders(places, log)
    folders.take()
    space = DiskSpace(places, folders, Clock(), log, uncontained(), lambda: waits.append("waits"))
    space.engine = engine = SimpleNamespace(trouble=None, committing_since=None)  # type: ignore[assignment]
    return space, engine, written, waits


def test_messages_are_refused_while_the_reserve_is_missing(places: Places) -> None:
    async def act() -> None:
        space, engine, written, _ = disk_space(places)
        assert (space.has_reserve, space.trouble()) == (True, None)
        for _ in range(2):
            space._kept(False)
        found = space.trouble()
        assert found is not None
        assert "no space left" in found.error
        assert not space.has_reserve
        engine.trouble = Trouble("the disk", "wait", 1.0)
        assert space.trouble() is engine.trouble
        engine.trouble = None
        for _ in range(2):
            space._kept(True)
        assert space.trouble() is None
        assert [line.split()[1] for line in written.getvalue().splitlines()] == [
            "reserve.gone",
            "reserve.made",
        ]

    asyncio.run(act())


def test_a_commit_that_hangs_is_logged_once_and_the_disk_is_looked_at_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_space_module, "_LOOK_SECONDS", 0.001)
    looks: list[bool] = []

    def keep(reserve: Path, is_stuck: bool) -> bool:
        looks.append(is_stuck)
        if len(looks) == 1:
            raise ValueError("not foreseen")
        return True

    monkeypatch.setattr(disk_space_module, "keep", keep)

    async def act() -> None:
        written, contained = io.StringIO(), list[str]()
        log = Log(Clock(), written)
        folders = Folders(places, log)
        folders.take()
        contain = Containment(log, lambda: 0.0, contained.append)
        space = DiskSpace(places, folders, Clock(), log, contain, lambda: None)
        engine: Any = SimpleNamespace(trouble=None, committing_since=1.0, commit_seconds=7.0)
        space.open(engine)
        await soon(lambda: len(looks) > 3)
        assert contained == ["schedule"]
        assert written.getvalue().count("journal.waits") == 1

    asyncio.run(act())


def test_the_first_failed_commit_is_logged_and_each_is_told(places: Places) -> None:
    async def act() -> None:
        space, engine, written, waits = disk_space(places)
        assert space.passing(ValueError("no journal's")) is None
        error = JournalUnwritable("the disk is full", "free some")
        assert space.passing(error) == ("the disk is full", "free some")
        engine.trouble = Trouble("the disk is full", "free some", 1.0)
        assert space.passing(error) == ("the disk is full", "free some")
        assert waits == ["waits", "waits"]
        assert written.getvalue().count("journal.waits") == 1
        await soon(lambda: not space._is_looking)
        # The disk is not full here: the reserve was not given up, nor made while commits wait.
        assert not space.has_reserve

    asyncio.run(act())


def test_the_reserve_is_made_after_the_start_and_again_when_somebody_has_removed_it(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.host.disk_space._LOOK_SECONDS", 0.01)

    async def act() -> None:
        space, engine, _, _ = disk_space(places)
        del space.engine
        space.open(engine)
        for _ in range(2):
            await soon(lambda: is_there(places.reserve))
            places.reserve.unlink()
        # While commits wait it is not made: the space is theirs.
        engine.trouble = Trouble("the disk is full", "free some", 1.0)
        await soon(lambda: not space._is_looking)
        places.reserve.unlink(missing_ok=True)
        await soon(lambda: not space.has_reserve)
        assert not is_there(places.reserve)
        assert space.trouble() is engine.trouble

    asyncio.run(act())


def test_a_state_folder_that_was_replaced_is_a_trouble_until_it_is_back(places: Places) -> None:
    async def look(space: DiskSpace) -> None:
        space._look(is_stuck=False)
        space._look(is_stuck=False)
        await soon(lambda: not space._is_looking)

    async def act() -> None:
        space, _, _, _ = disk_space(places)
        await look(space)
        assert space.trouble() is None
        assert is_there(places.reserve)
        away = places.state.with_name("away")
        places.state.rename(away)
        places.state.mkdir(mode=0o700)
        await look(space)
        first = space.trouble()
        assert first is not None
        assert "is another folder than at the start" in first.error
        # The other folder gets no reserve of ours, and the trouble keeps the time of its start.
        assert os.listdir(places.state) == []
        await look(space)
        assert space.trouble() is first
        places.state.rmdir()
        away.rename(places.state)
        await look(space)
        assert space.trouble() is None

    asyncio.run(act())


def test_a_disk_that_does_not_answer_is_looked_at_by_one_thread(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    answering = threading.Event()

    def keep(reserve: Path, is_stuck: bool) -> bool:
        looks.append(is_stuck)
        return answering.wait(DEADLINE_SECONDS)

    monkeypatch.setattr(disk_space_module, "keep", keep)

    async def act() -> None:
        space, _, _, _ = disk_space(places)
        for _ in range(3):
            space._look(is_stuck=False)
        await soon(lambda: looks)
        # Behind whatever else was begun.
        await asyncio.to_thread(lambda: None)
        answering.set()
        await soon(lambda: not space._is_looking)
        assert looks == [False]

    asyncio.run(act())


def test_a_state_folder_that_is_replaced_during_a_look_is_no_full_disk(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(reserve: Path, is_stuck: bool) -> bool:
        places.state.rename(places.state.with_name("away"))
        places.state.mkdir(mode=0o700)
        return False

    monkeypatch.setattr(disk_space_module, "keep", keep)

    async def act() -> None:
        space, _, _, _ = disk_space(places)
        space._look(is_stuck=False)
        await soon(lambda: not space._is_looking)
        found = space.trouble()
        assert found is not None
        assert "is another folder than at the start" in found.error
        assert space.has_reserve

    asyncio.run(act())


def test_with_the_journal_on_a_server_no_reserve_is_kept_and_the_server_is_named(places: Places) -> None:
    async def act() -> None:
        log = Log(Clock(), io.StringIO())
        folders = Folders(places, log)
        folders.take()
        space = DiskSpace(places, folders, Clock(), log, uncontained(), lambda: None, on_server=True)
        engine: Any = SimpleNamespace(trouble=None, committing_since=1.0, commit_seconds=7.0)
        space.engine = engine
        space._look(is_stuck=False)
        await soon(lambda: not space._is_looking)
        assert space.has_reserve
        assert not is_there(places.reserve)
        assert space.trouble() == Trouble(
            "a commit to the journal's database does not come back",
            "look at the server and at the network to it",
            1.0,
        )

    asyncio.run(act())
