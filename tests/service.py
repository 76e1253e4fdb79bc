"""The whole service as a test holds it: a real supervisor in a folder of its own, and clients of it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc import interpreter
from ipc.messages import (
    Accepted,
    Delta,
    Done,
    Event,
    Interrupt,
    Noted,
    Request,
    Show,
    Submit,
    Subscribe,
    Subscribed,
)
from ipc.places import find_places
from supervisor.journal import journal
from supervisor.journal.migrate import migrate
from tests import warm
from tests.fake_model import FakeModel
from tests.waiting import DEADLINE_SECONDS, until

_Expected = TypeVar("_Expected")
VOICELESS = 'engine = "off"'
NO_GATEWAY = 'listen = "off"'
ENDINGS = ("turn.done", "turn.failed", "turn.interrupted")


def settings_for(model: FakeModel, **tables: str) -> str:
    """A hermes.toml that points at the fake model; `tables` adds lines to a table by its name.

    Without a table `stt` nobody can speak, and no speech model is loaded; without `gateway` there is none.
    """
    lines = ["[model]", f'base_url = "{model.base_url}"', 'name = "fake"']
    tables = {"stt": VOICELESS, "gateway": NO_GATEWAY} | tables
    for table, text in tables.items():
        lines += [f"[{table}]", text]
    return "\n".join(lines) + "\n"


@cache
def _new_journal() -> bytes:
    """As a first start leaves it, but for its epoch: making the tables takes a tenth of a start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        connection = journal.connect(str(path))
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, str(path))
        connection.close()
        return path.read_bytes()


class Service:
    """One home folder and the supervisor running in it; it may be killed and started again."""

    def __init__(self, home: Path, settings: str, module: str = "supervisor") -> None:
        """There is a gateway only when the settings name one: most tests need none."""
        self.home = home
        self._module = module
        home.mkdir(exist_ok=True)
        if "[gateway]" not in settings:
            settings += f"[gateway]\n{NO_GATEWAY}\n"
        (home / "hermes.toml").write_text(settings)
        self.places = find_places(str(home))
        self.process: subprocess.Popen[bytes] | None = None
        self._clients: list[Client] = []
        self._line: Client | None = None
        self._hang_up: Callable[[], object] = lambda: None

    def __enter__(self) -> "Service":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        self._hang_up()
        if self.process is not None and self.process.poll() is None:
            self.stop()

    def start(self) -> None:
        """Returns when the service answers."""
        self.launch()
        until(self.answers)

    def launch(self) -> None:
        """As `python -m supervisor` becomes it: an isolated interpreter."""
        if not self.places.journal.exists():
            self.places.journal.touch(0o600)
            self.places.journal.write_bytes(_new_journal())
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = warm.Popen(
                interpreter.command(self._module, "--home", str(self.home)),
                stdout=log,
                stderr=log,
                env=interpreter.without_code(os.environ),
                start_new_session=True,
            )

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-4000:]
        try:
            return bool(self.status())
        except NotRunning:
            return False

    def stop(self) -> int:
        """Asks it to end, as systemd and Ctrl-C do, and gives its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_SECONDS)

    def kill(self) -> None:
        """SIGKILL: it has no say in it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)

    def log(self) -> str:
        return (self.home / "supervisor.log").read_text()

    def client(self) -> Client:
        client = Client(self.places)
        self._clients.append(client)
        return client

    def show(self, what: Any, limit: int = 100, **filters: Any) -> list[dict[str, Any]]:
        """The rows of a table, page after page."""
        at_most = None if what in ("story", "metrics", "workers") else limit
        return list(self._connected().rows(Show(what, limit=limit, **filters), at_most))

    def status(self) -> dict[str, Any]:
        return self.show("status")[0]

    def say(self, session: str, text: str, *, key: str | None = None, **options: Any) -> Accepted:
        return self._ask(Submit(session, text, key or os.urandom(8).hex(), **options), Accepted)

    def interrupt(self, session: str, **options: Any) -> Done:
        return self._ask(Interrupt(session, "test", **options), Done)

    def _ask(self, request: Request, expected: type[_Expected]) -> _Expected:
        return self._connected().ask(request, expected)

    def _connected(self) -> Client:
        """One connection for the life of a supervisor: tests look often, and a new one costs a thread."""
        if self._line is not None and self._line.is_lost():
            self._hang_up()
            self._line = None
        if self._line is None:
            self._line = Client(self.places)
            # Also where a test never ends the service that it looked at.
            self._hang_up = weakref.finalize(self, self._line.close)
        return self._line

    def listen(self, session: str, after: int = 0) -> "Listener":
        return Listener(self.client(), session, after)

    def hermesctl(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hermesctl", "--home", str(self.home), *arguments]
        return warm.run(command, timeout=timeout)


class Listener:
    """A client that follows one session and remembers all it was told."""

    def __init__(self, client: Client, session: str, after: int) -> None:
        self.client = client
        self.events: list[Event] = []
        self.words = ""
        self.notes: list[str] = []
        # All of it, in the order it came.
        self.heard: list[Event | Delta | Noted] = []
        self._number = client.post(Subscribe(session, after))
        client.answer_to(self._number, Subscribed)

    def until(self, condition: Callable[[], Any], deadline_seconds: float = DEADLINE_SECONDS) -> None:
        """Reads until the condition holds of what was heard."""
        deadline = time.monotonic() + deadline_seconds
        while not condition():
            assert time.monotonic() < deadline, f"not heard in time; heard {self.types()} and {self.words!r}"
            arrived = self.client.receive(0.2)
            if arrived is None or arrived[0] != self._number:
                continue
            if isinstance(arrived[1], Event | Delta | Noted):
                self.heard.append(arrived[1])
            match arrived[1]:
                case Event() as event:
                    self.events.append(event)
                case Delta(text=text):
                    self.words += text
                case Noted(text=text):
                    self.notes.append(text)

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of_type(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def ending(self, turn: str, deadline_seconds: float = DEADLINE_SECONDS) -> Event:
        """The one event that ends a turn."""

        def found() -> list[Event]:
            return [event for event in self.of_type(*ENDINGS) if event.fields["turn"] == turn]

        self.until(found, deadline_seconds)
        assert len(found()) == 1
        return found()[0]


def lines(output: str) -> list[dict[str, Any]]:
    """JSON lines, parsed."""
    return [json.loads(line) for line in output.splitlines()]
