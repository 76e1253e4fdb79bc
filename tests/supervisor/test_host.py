"""The process and its host: folders that are replaced, the end, signals and threads."""

import asyncio
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ipc.places import Places, find_places
from ipc.time_budgets import STOP_SECONDS
from supervisor.clock import Clock
from supervisor.host import signals, threads
from supervisor.host.folder_identity import FolderReplaced, Folders
from supervisor.host.shutdown import Shutdown
from supervisor.telemetry.log import Log
from supervisor.telemetry.systemd_notify import Notifier
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


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "made"])
def test_the_folder_of_the_settings_is_one_that_is_compared(tmp_path: Path, is_there: bool) -> None:
    config = tmp_path / "above" / "config"
    if is_there:
        config.mkdir(parents=True, mode=0o700)
    folders, _ = taken(Places(config, tmp_path / "state", tmp_path / "run"))
    config.rename(tmp_path / "away")
    config.mkdir(mode=0o700)
    with pytest.raises(FolderReplaced, match="is another folder"):
        folders.check(config)


def test_a_folder_of_settings_that_cannot_be_made_is_logged_and_missing_is_its_state(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = tmp_path / "file" / "config"
    folders, written = taken(Places(config, tmp_path / "state", tmp_path / "run"))
    assert written.getvalue().endswith(f" settings.no_folder path={config}\n")
    folders.check_all()


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
