"""What systemd is told, on a socket of the test's own, and when."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from supervisor.telemetry.systemd_notify import Notifier, Watch, waiting
from tests.waiting import DEADLINE_SECONDS, soon


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The socket of systemd, named in the environment."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@hermes-test-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(name.replace("@", "\0") if name.startswith("@") else name)
        made.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        yield made


def test_systemd_is_told_and_no_child_can_tell_it(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "9000000")
    notifier = Notifier()
    assert notifier.is_heard
    assert notifier.watchdog_seconds == 9.0
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & os.environ.keys()
    for tell, told in (
        (notifier.ready, b"READY=1\nSTATUS=ready"),
        (lambda: notifier.alive("2 turns"), b"WATCHDOG=1\nSTATUS=2 turns"),
        (lambda: notifier.reloading(1.5), b"RELOADING=1\nMONOTONIC_USEC=1500000"),
        (lambda: notifier.status("x"), b"STATUS=x"),
        (notifier.stopping, b"STOPPING=1\nSTATUS=stopping"),
    ):
        tell()
        assert manager.recv(1000) == told
    manager.close()
    notifier.ready()


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("3000000", "", 3.0),
        ("3000000", "own", 3.0),
        ("3000000", "1", None),
        ("soon", "", None),
        ("", "", None),
    ],
)
def test_the_watchdog_counts_where_it_is_meant_for_this_process(
    monkeypatch: pytest.MonkeyPatch, usec: str, pid: str, seconds: float | None
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    notifier = Notifier()
    assert notifier.watchdog_seconds == seconds
    assert not notifier.is_heard
    notifier.ready()


class Turning:
    """An engine that has made a turn when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []

    def prove(self, moved: Callable[[], None]) -> None:
        self.asked.append(moved)


def test_the_watchdog_is_told_after_a_turn_of_the_engine_and_asked_again_later(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000")

    async def act() -> None:
        engine = Turning()
        watch = Watch(Notifier(), engine, lambda: "fine")
        watch.close()
        watch.open()
        assert len(engine.asked) == 1
        with pytest.raises(BlockingIOError):
            manager.recv(1000)
        engine.asked[0]()
        assert manager.recv(1000) == b"WATCHDOG=1\nSTATUS=fine"
        assert len(engine.asked) == 1
        await soon(lambda: len(engine.asked) == 2)
        engine.asked[1]()
        watch.close()
        assert watch._timer is not None
        assert watch._timer.cancelled()
        # Three times a deadline.
        assert watch._pause_seconds == pytest.approx(0.02)

    asyncio.run(act())


def test_without_systemd_the_engine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    engine = Turning()
    watch = Watch(Notifier(), engine, lambda: "fine")
    watch.open()
    assert engine.asked == []
    assert watch._pause_seconds == pytest.approx(5.0 / 3)


def test_a_start_that_waits_asks_for_time_and_leaves_the_notifier_of_the_service_its_environment(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "9000000")
    waiting("it waits for the database", 2.0)
    assert manager.recv(1000) == b"EXTEND_TIMEOUT_USEC=20000000\nSTATUS=it waits for the database"
    notifier = Notifier()
    assert notifier.is_heard
    assert notifier.watchdog_seconds == 9.0


def test_a_systemd_that_reads_nothing_holds_nobody_up(manager: socket.socket) -> None:
    with ExitStack() as filling:
        while _fills(filling, manager):
            pass
        telling = threading.Thread(target=Notifier().ready, daemon=True)
        telling.start()
        telling.join(DEADLINE_SECONDS)
        assert not telling.is_alive()


def _fills(filling: ExitStack, manager: socket.socket) -> bool:
    """Send from another socket, as long as the kernel takes it; return whether it took anything."""
    link = filling.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    link.setblocking(False)
    link.connect(manager.getsockname())
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += link.send(b"x")
    return sent > 0
