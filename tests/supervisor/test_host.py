"""The process and its host: folders that are replaced, the reserve on a full disk, signals and threads."""

import asyncio
import io
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from ipc.places import Places, find_places
from ipc.time_budgets import STOP_SECONDS
from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.decider import Trouble
from supervisor.host import disk_space as disk_space_module
from supervisor.host import signals, threads
from supervisor.host.disk_space import RESERVE_BYTES, DiskSpace, is_there, keep
from supervisor.host.folder_identity import FolderReplaced, Folders
from supervisor.host.shutdown import Shutdown
from supervisor.journal.errors import JournalUnwritable
from supervisor.telemetry.log import Log
from supervisor.telemetry.systemd_notify import Notifier
from tests.no_containment import uncontained
from tests.waiting import soon, until


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return find_places(str(tmp_path / "home"))


def taken(places: Places, handed: Any = None) -> tuple[Folders, io.StringIO]:
    written = io.StringIO()
    folders = Folders(places, Log(Clock(), written))
    folders.take(handed)
    return folders, written


# --- folders


def test_folders_are_made_private_and_are_the_same_until_something_happens(places: Places) -> None:
    folders, _ = taken(places)
    for folder in (places.state, places.runtime, places.clips, places.workspaces, places.logs):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert places.config.is_dir()
    (places.clips / "a clip").write_text("changes nothing")
    folders.check(places.clips, places.state)
    folders.check_all()
    assert folders.look() == {}


def _swap(places: Places) -> None:
    places.clips.rename(places.clips.with_name("away"))
    places.clips.mkdir(mode=0o700)


def _link(places: Places) -> None:
    away = places.clips.with_name("away")
    places.clips.rename(away)
    places.clips.symlink_to(away)


def _remove(places: Places) -> None:
    places.clips.rmdir()


def _open(places: Places) -> None:
    places.clips.chmod(0o755)


def _give_away(places: Places) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(places.clips, 12345, -1)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_swap, "is another folder than at the start"),
        (_link, "leads to"),
        (_remove, "is gone"),
        (_open, "has the mode 755 now, at the start it had 700"),
        (_give_away, "belongs to user 12345 now"),
    ],
)
def test_a_folder_that_was_changed_is_named_and_no_other(places: Places, change: Any, fault: str) -> None:
    folders, written = taken(places)
    change(places)
    folders.check(places.state, places.logs)
    with pytest.raises(FolderReplaced, match=fault):
        folders.check(places.state, places.clips)
    with pytest.raises(FolderReplaced):
        folders.check_all()
    found = folders.look()
    assert list(found) == [str(places.clips)]
    for _ in range(3):
        folders.looked(found)
    assert folders.faults == found
    folders.looked({})
    lines = [line.split()[1] for line in written.getvalue().splitlines()]
    assert lines == ["folder.replaced", "folder.back"]


def test_the_next_image_compares_with_what_the_first_has_taken(places: Places) -> None:
    first, _ = taken(places)
    known = first.known
    taken(places, known)
    _swap(places)
    with pytest.raises(FolderReplaced):
        taken(places, known)
    # A folder that this image does not use is not its business, and a start of its own takes what is there.
    taken(places, {"/elsewhere": known[str(places.clips)]})
    taken(places)


# --- the reserve

# In a file system of 8 MiB: what `keep` does when there is room, when commits wait, and when it is full.
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
        space.open(SimpleNamespace(trouble=None, committing_since=1.0, commit_seconds=7.0))  # type: ignore[arg-type]
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


# --- the end


@pytest.fixture
def alarm() -> Iterator[None]:
    """The alarm of the test runner is put back."""
    before = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, *before)


@pytest.mark.usefixtures("alarm")
def test_the_first_request_to_stop_sets_the_alarm_and_says_what_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    workers: list[object] = []
    services: list[dict[str, Any]] = []
    shutdown = Shutdown(Notifier(), lambda: workers, lambda: services)
    assert shutdown.waits_for() == ""
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    shutdown.begin()
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= STOP_SECONDS
    assert manager.recv(1000) == b"STOPPING=1\nSTATUS=stopping"
    signal.setitimer(signal.ITIMER_REAL, 1000)
    shutdown.begin()
    assert signal.getitimer(signal.ITIMER_REAL)[0] > STOP_SECONDS
    assert shutdown.waits_for() == "waiting for the last processes to end"
    workers.append(object())
    assert shutdown.waits_for() == "waiting for 1 worker to end"
    shutdown.tell()
    assert manager.recv(1000) == b"STATUS=stopping, waiting for 1 worker to end"
    manager.close()
    workers.append(object())
    services += [{"service": "stt", "pid": 7}, {"service": "model", "pid": None}]
    assert shutdown.waits_for() == "waiting for 2 workers and the service stt (pid 7) to end"


# --- signals and threads


@pytest.fixture
def own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in threads.REQUESTS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _blocked(thread: int) -> set[int]:
    lines = Path(f"/proc/self/task/{thread}/status").read_text().splitlines()
    mask = int(next(line.split()[1] for line in lines if line.startswith("SigBlk")), 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


@pytest.mark.usefixtures("own_handlers")
def test_threads_block_requests_and_their_starter_does_not() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, threads.REQUESTS)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    seen: list[set[int]] = []
    thread = threads.start(lambda: seen.append(_blocked(threading.get_native_id())), "one")
    thread.join()
    assert thread.daemon
    assert set(threads.REQUESTS) <= seen[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    with threads.executor() as executor:
        assert set(threads.REQUESTS) <= executor.submit(_blocked_here).result()


def _blocked_here() -> set[int]:
    return _blocked(threading.get_native_id())


@pytest.mark.usefixtures("own_handlers")
def test_requests_are_served_by_the_loop_and_wait_in_the_kernel_when_they_are_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    async def act() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, threads.REQUESTS)
        signals.listen(lambda: told.append("stop"), lambda: told.append("reload"))
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            count = len(told)
            os.kill(os.getpid(), number)
            await soon(lambda count=count: len(told) > count)  # type: ignore[misc]
        assert told == ["reload", "stop", "stop"]
        with monkeypatch.context() as patched:
            patched.setattr(sys.stderr, "isatty", lambda: True, raising=False)
            os.kill(os.getpid(), signal.SIGHUP)
            await soon(lambda: len(told) == 4)
        assert told[-1] == "stop"
        # One that came before is served; one that comes after waits for the next image.
        os.kill(os.getpid(), signal.SIGHUP)
        await signals.hold_back()
        assert told[4:] == ["reload"]
        # To this thread: those of the test runner do not hold it back.
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        assert signal.sigtimedwait([signal.SIGHUP], 10) is not None
        assert told[4:] == ["reload"]
        for number in threads.REQUESTS:
            asyncio.get_running_loop().remove_signal_handler(number)

    # The loop of the service: another one reads and serves a signal in other rounds.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(act())
    until(lambda: signal.sigpending() == set())
