"""The three walks, taken from a real supervisor, workers, STT service and client."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hermesctl.errors import NotRunning
from tests import warm
from tests.acceptance.sight import named, shell, sleeper
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.stt_service.sounds import clip
from tests.waiting import until
from tests.walks import trace
from tests.walks.trace import Entry
from tests.weights import pulled

_WORKERS = "count = 2"
# A recorded process is several times slower, and the machine may be busy with other tests.
_WAIT_SECONDS = 120.0
# Ends the walk of a recovery.
ASSIGNED = "worker/lifecycle.py:Lifecycle._assign"


def text_turn(home: Path, model: FakeModel) -> list[Entry]:
    """From `hermesctl send` to the answer; the session has been spoken to before, so it has its worker."""
    with _service(home, model) as service:
        _send(service, "hello")
        _settled(service)
        return _until_shown(service, _send(service, "hello again"))


def voice_interrupt(home: Path, model: FakeModel) -> list[Entry]:
    """From `hermesctl send --audio`, while a tool runs, to the answer of the turn that takes its place."""
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    with _service(home, model, stt="echo = true") as service:
        until(lambda: _can_transcribe(service), _WAIT_SECONDS)
        mark = f"work-{os.urandom(6).hex()}"
        service.say("demo", shell(sleeper(mark)))
        until(lambda: named(mark), _WAIT_SECONDS)
        _settled(service)
        return _until_shown(service, _send(service, "--audio", str(clip("young_man"))))


def recovery(home: Path, model: FakeModel) -> list[Entry]:
    """From the start after a SIGKILL during a turn to the worker that makes the next attempt at it."""
    with _service(home, model) as service:
        service.say("demo", "[[slow interval=0.2 count=200]] go")
        listener = service.listen("demo")
        listener.until(lambda: listener.words, _WAIT_SECONDS)
        service.kill()
        began = time.monotonic_ns()
        service.launch()
        [end, *_] = until(lambda: _assigned(service, began), _WAIT_SECONDS)
        return [entry for entry in trace.read(service.home) if began <= entry.at <= end]


def _assigned(service: Service, began: int) -> list[int]:
    """When a worker was given a turn; read from the trace, because a query would be a walk too."""
    found = (entry for entry in trace.read(service.home) if entry.name == ASSIGNED)
    return [entry.at for entry in found if entry.at >= began]


# The worker that is started for the pool when the killed one's turn goes to a spare.
_NEXT_SPARE = {
    "supervisor/core/supply.py:provide",
    "supervisor/processes/worker_processes.py:Processes.start",
    "supervisor/processes/worker_processes.py:Processes._forked",
    "supervisor/processes/worker_processes.py:Processes._running",
    "worker/zygote.py:Zygote._start",
    "worker/worker_main.py:_run",
    "worker/worker_main.py:run",
}


@dataclass(frozen=True)
class Scene:
    play: Callable[[Path, FakeModel], list[Entry]]
    # What is called meanwhile and does not bring this message on.
    beside: frozenset[str] = frozenset()


SCENES = {
    "text turn": Scene(text_turn),
    "voice interrupt": Scene(voice_interrupt, frozenset(_NEXT_SPARE)),
    "recovery": Scene(recovery),
}


def _service(home: Path, model: FakeModel, **tables: str) -> Service:
    settings = settings_for(model, workers=_WORKERS, **tables)
    return Service(home, settings, "tests.walks.traced_supervisor")


def _send(service: Service, *message: str) -> str:
    """The trace of the client."""
    program = [sys.executable, "-m", "tests.walks.traced", "hermesctl"]
    sent = warm.run([*program, "--home", str(service.home), "send", "demo", *message], timeout=_WAIT_SECONDS)
    assert sent.returncode == 0, sent.stdout + sent.stderr[-2000:]
    return sent.stderr


def _until_shown(service: Service, client: str) -> list[Entry]:
    """What all processes entered from the client's start until it wrote the end of the answer."""
    theirs = sorted(trace.entries(client))
    ended = max(entry.at for entry in theirs if entry.file == "hermesctl/answer_stream.py")
    entries = (*trace.read(service.home), *theirs)
    return [entry for entry in entries if theirs[0].at <= entry.at <= ended]


def _settled(service: Service) -> None:
    """Returns when no worker is being made: the spare that takes the place of one now in use is no walk."""
    until(lambda: all(row["state"] != "starting" for row in service.show("workers")), _WAIT_SECONDS)


def _can_transcribe(service: Service) -> bool:
    """A supervisor that is recorded may be too slow to answer while the weights load."""
    with suppress(NotRunning):
        rows = service.show("services")
        return any((row["service"], row["state"]) == ("stt", "ready") for row in rows)
    return False
