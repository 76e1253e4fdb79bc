"""What systemd is told, read from a real socket; and what it is not told when the engine stands still."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import Submit
from ipc.time_budgets import STOP_SECONDS
from tests.acceptance.sight import alive, descendants
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

WATCHDOG_SECONDS = 0.6


class Ear:
    """The socket of a service manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.heard: list[str] = []

    def within(self, seconds: float) -> bool:
        """Whether something was said in that time; it is taken in."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return False
        self.heard += self._socket.recv(4096).decode().splitlines()
        return True

    def until(self, word: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not any(said.startswith(word) for said in self.heard):
            assert time.monotonic() < deadline, self.heard
            self.within(0.5)

    def close(self) -> None:
        self._socket.close()


class Notifying(Service):
    """Started as systemd would, with a disk that can be made to stop answering."""

    def __init__(self, home: Path, settings: str, ear: Ear) -> None:
        super().__init__(home, settings)
        self._ear = ear
        self.mark = home / "stuck"

    def start(self) -> None:
        told = {"NOTIFY_SOCKET": str(self._ear.path), "WATCHDOG_USEC": f"{WATCHDOG_SECONDS * 1e6:.0f}"}
        line = [sys.executable, "-m", "tests.supervisor.stuck_supervisor", str(self.mark)]
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*line, "--home", str(self.home)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **told},
            )
        until(self.answers)


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(tmp_path / "notify")
    yield ear
    ear.close()


@pytest.fixture
def service(tmp_path: Path, ear: Ear, model: FakeModel) -> Iterator[Notifying]:
    notifying = Notifying(tmp_path / "home", settings_for(model, workers="count = 1"), ear)
    with notifying:
        yield notifying
        if notifying.process is not None:
            notifying.process.kill()
            notifying.process.wait()


def test_e8_ready_alive_and_stopping_are_told(service: Notifying, ear: Ear) -> None:
    ear.until("READY=1")
    assert "WATCHDOG=1" not in ear.heard[: ear.heard.index("READY=1")]
    ear.until("WATCHDOG=1")
    service.say("demo", "[[silent]] wait")
    ear.until("STATUS=1 sessions live, 1 turns running")
    service.stop()
    ear.until("STOPPING=1")
    ear.until("STATUS=stopping, waiting for")


def test_e8_an_engine_that_stands_still_says_nothing_and_its_stop_is_still_bounded(
    service: Notifying, ear: Ear
) -> None:
    assert service.process is not None
    ear.until("WATCHDOG=1")
    service.mark.touch()
    client = service.client()
    client.post(Submit("demo", "hello", "key"))
    # What was said before the disk stopped answering may still be on its way.
    until(lambda: not ear.within(WATCHDOG_SECONDS * 3))
    ear.heard.clear()
    # Its loop turns: it answers. But nothing is decided any more, and systemd is not told otherwise.
    assert service.status()["state"] == "ready"
    assert not ear.within(WATCHDOG_SECONDS)
    family = descendants(service.process.pid)
    began = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(STOP_SECONDS + DEADLINE_SECONDS) == -signal.SIGALRM
    assert time.monotonic() - began < STOP_SECONDS + 5
    until(lambda: not alive(family))
