"""Clips that hurt: each is refused by name, and a crash in native code costs one clip."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import Event
from tests.acceptance.crashing_stt import DECODER_CRASHES, MODEL_CRASHES
from tests.acceptance.test_voice import START_SECONDS, hearing, outcome, speak, stt
from tests.checker import check_history
from tests.fake_model import FakeModel
from tests.service import Service
from tests.stt_service.hostile import hostile_files
from tests.stt_service.sounds import clip, file_of, samples_of
from tests.waiting import until

CRASHING = "tests.acceptance.crashing_stt_supervisor"
# What a person is told of each.
REASONS = {
    "ogg and chance": "the ogg file cannot be read",
    "ogg, cut after 40 bytes": "the ogg file cannot be read",
    "a text": "the clip is a text, not sound",
    "video only, mp4": "the file holds no sound, only other streams",
    "a flac that says 24 hours": "the clip says it lasts 86,400 s, the limit is 900 s",
    "a flac of twenty minutes that does not say so": "the clip is longer than it may be, the limit is 900 s",
    "8 channels at 192 kHz": "the clip has 192,000 samples a second, 4,000 to 96,000 are taken",
    "silence": "nothing was understood",
}


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    """One for all tests here, each with sessions of its own."""
    with hearing(tmp_path_factory.mktemp("hostile"), model_server, "echo = true", CRASHING) as service:
        until(lambda: stt(service)["state"] == "ready", START_SECONDS)
        yield service
        check_history(service.places.journal)


@pytest.fixture
def service(crashing: Service, model: FakeModel) -> Service:
    return crashing


@pytest.mark.parametrize("name", REASONS)
def test_c7_a_file_that_is_no_speech_is_refused_by_name(service: Service, name: str) -> None:
    restarts = stt(service)["restarts"]
    path = service.home / "sound"
    path.write_bytes(hostile_files()[name][0])
    sent = service.hermesctl("send", "c7", "--audio", str(path))
    assert sent.returncode == 4, (sent.stdout, sent.stderr)
    assert "will not be answered" in sent.stderr
    assert REASONS[name] in sent.stderr
    assert "hint:" in sent.stderr
    assert stt(service)["restarts"] == restarts


def test_c7_nothing_is_promised_for_what_cannot_be_a_clip(service: Service) -> None:
    empty, huge = service.home / "empty", service.home / "huge"
    empty.touch()
    with huge.open("wb") as file:
        file.truncate(26 * 1024 * 1024)
    stored = set(service.places.clips.iterdir())
    for path, said, code in ((empty, "empty", 5), (huge, "bytes", 5), (Path("/nowhere"), "not exist", 2)):
        sent = service.hermesctl("send", "c7-door", "--audio", str(path))
        assert (sent.returncode, said in sent.stderr) == (code, True), sent.stderr
    assert set(service.places.clips.iterdir()) == stored
    assert service.show("turns", session="c7-door") == []
    both = service.hermesctl("send", "c7-door", "words", "--audio", str(empty))
    assert both.returncode == 2


def marked(mark: bytes) -> bytes:
    """Speech, and behind it what makes the service crash."""
    return file_of(samples_of("young_man"), "wav") + mark


def both(service: Service, session: str, mark: bytes) -> tuple[Event, Event]:
    """What becomes of a clip that crashes something, and of one of another session beside it."""
    here, there = service.listen(session), service.listen(f"{session}-other")
    bad = speak(service, session, marked(mark))
    good = speak(service, f"{session}-other", clip("young_man"))
    return outcome(here, bad), outcome(there, good)


def test_c7_a_native_crash_of_the_decoder_costs_its_clip_alone(service: Service) -> None:
    before = stt(service)
    failed, other = both(service, "decoder", DECODER_CRASHES)
    assert (failed.type, other.type) == ("transcript.failed", "transcript.ready")
    assert failed.fields["reason"] == "the clip crashes the decoder"
    assert failed.fields["hint"] == "convert it to another format and send it again"
    after = stt(service)
    assert (after["pid"], after["restarts"]) == (before["pid"], before["restarts"])


def test_c7_a_native_crash_of_the_model_costs_its_clip_alone(service: Service) -> None:
    """The process of the service ends with it, twice; another one is there for the next clip."""
    before, epoch = stt(service), service.status()["epoch"]
    failed, other = both(service, "model", MODEL_CRASHES)
    assert (failed.type, other.type) == ("transcript.failed", "transcript.ready")
    assert failed.fields["reason"] == "the STT service ended 2 times while it was at it"
    assert f"hermesctl retry {failed.fields['message']}" in failed.fields["hint"]
    # Started again after a pause, which is longer each time.
    until(lambda: stt(service)["restarts"] == before["restarts"] + 2, START_SECONDS)
    assert service.status()["epoch"] == epoch
    assert outcome(service.listen("model-other"), other.fields["message"]) == other
