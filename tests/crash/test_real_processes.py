"""SIGKILL of a supervisor with real workers and the real STT service, where a promise hangs on the order."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermesctl.clip_upload import store
from ipc.messages import Submit
from tests.acceptance.sight import alive, descendants, shell
from tests.checker import History, check_history, check_quiet
from tests.crash.audience import Audience, Play
from tests.crash.doomed_supervisor import MET
from tests.crash.points import COMMIT
from tests.crash.real_supervisor import DOOM
from tests.crash.scenarios import ended
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.stt_service.sounds import SAID, clip
from tests.stt_service.wording import errors
from tests.waiting import until
from tests.weights import pulled

# The weights of the STT service are loaded in each life.
PATIENCE_SECONDS = 120.0
# Of a typed message: accepted, opened, given to its worker, at work with a tool, done.
TYPED = [
    (COMMIT, "before"),
    ("answer: Accepted", "before"),
    ("AttemptOpened: attempt.opened", "after"),
    ("Assignment.assign", "after"),
    ("ToolCallStarted: tool.started", "after"),
    ("Router.acknowledge", "before"),
    ("TurnDone: turn.done", "before"),
    ("Subscriptions.publish", "before"),
]
# Of a clip: stored, sent to the service, and its transcript.
SPOKEN = [
    ("MessageAccepted: message.kept", "after"),
    ("Transcription.transcribe", "after"),
    ("TranscriptReady: transcript.ready", "before"),
    ("TranscriptReady: transcript.ready", "after"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@contextmanager
def doomed(home: Path, model: FakeModel, **tables: str) -> Iterator[Service]:
    """A service that begins when it lives, and ends where it is doomed to."""
    model.reset()
    settings = settings_for(model, workers="count = 2", **tables)
    service = Service(home, settings, "tests.crash.real_supervisor")
    try:
        yield service
    finally:
        service.__exit__(None, None, None)


def typed(session: str) -> Play:
    yield Submit(session, shell("echo at work"), "first")
    yield Submit(session, "and then?", "second", busy="queue")
    yield ended(2)


def spoken(session: str, stored: str) -> Play:
    yield Submit(session, "", "first", clip=stored)
    yield Submit(session, "and then?", "second", busy="queue")
    yield ended(2)


def live(service: Service, audience: Audience) -> set[int]:
    """One life, until its doom or the end of all plays; returns the processes that it had."""
    service.launch()
    process = service.process
    assert process is not None
    family: set[int] = set()

    def has_gone() -> bool:
        family.update(descendants(process.pid))
        return process.poll() is not None

    try:
        audience.visit(has_gone, lambda: audience.is_content, PATIENCE_SECONDS)
    except AssertionError as stuck:
        raise AssertionError(f"{stuck}\n{service.log()[-3000:]}") from None
    return family


def lives(service: Service, audience: Audience, point: str, when: str) -> History:
    """A life that ends at the point, then one in which all plays come to their end."""
    (service.home / DOOM).write_text(json.dumps({"point": point, "when": when, "count": 1}))
    family = live(service, audience)
    assert service.process is not None
    assert service.process.poll() == -signal.SIGKILL, f"{point} was not met\n{service.log()[-3000:]}"
    assert (service.home / MET).read_text() == f"{point} {when}\n"
    until(lambda: not alive(family))
    if service.places.journal.exists():
        check_history(service.places.journal, audience.sights)
    (service.home / DOOM).unlink()
    live(service, audience)
    service.kill()
    return check_quiet(service.places.journal, audience.sights)


@pytest.mark.parametrize(("point", "when"), TYPED)
def test_d11_a_typed_message_survives_a_supervisor_with_real_workers(
    home: Path, model_server: FakeModel, point: str, when: str
) -> None:
    with doomed(home, model_server) as service:
        audience = Audience(service.places, {"typed": typed("typed")})
        history = lives(service, audience, point, when)
    assert [turn["state"] for turn in history.turns] == ["done", "done"]


@pytest.mark.parametrize(("point", "when"), SPOKEN)
def test_c3_a_clip_survives_a_supervisor_with_the_real_stt_service(
    home: Path, model_server: FakeModel, point: str, when: str
) -> None:
    (home / "models").symlink_to(pulled("tiny.en"))
    with doomed(home, model_server, stt="echo = true") as service:
        stored = store(service.places, str(clip("young_man")))
        audience = Audience(service.places, {"spoken": spoken("spoken", stored)})
        history = lives(service, audience, point, when)
    assert [event["type"] for event in history.events].count("transcript.ready") == 1
    assert [turn["state"] for turn in history.turns] == ["done", "done"]
    assert errors(SAID["young_man"], history.messages[0]["text"]) <= 1
