"""Spoken messages end to end: real recordings, the real speech model, and turns that are really at work."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermesctl.clip_upload import store
from ipc.messages import Accepted, Done, Event, Queue, Submit
from tests.acceptance.sight import named, shell, sleeper
from tests.checker import check_history
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.stt_service.long_clips import two_windows
from tests.stt_service.sounds import SAID, clip, file_of, silence
from tests.stt_service.wording import errors
from tests.waiting import until
from tests.weights import pulled

# Loading the weights takes seconds, many on a machine that has much else to do.
START_SECONDS = 90.0
# A clip that is begun again: twice as long.
AGAIN_SECONDS = 180.0


@pytest.fixture(scope="module")
def spoken_to(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    # The deadline is not what these tests are about, and a long clip on a busy machine may take a minute.
    with hearing(tmp_path_factory.mktemp("voice"), model_server, 'deadline = "3m"') as service:
        yield service
        check_history(service.places.journal)


@pytest.fixture
def service(spoken_to: Service, model: FakeModel) -> Service:
    """One for all tests here, each with sessions of its own; it can hear."""
    until(lambda: stt(spoken_to)["state"] == "ready", START_SECONDS)
    return spoken_to


def hearing(folder: Path, model: FakeModel, stt: str, module: str = "supervisor") -> Service:
    home = folder / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    return Service(home, settings_for(model, workers="count = 2", stt=stt), module)


def stt(service: Service) -> dict[str, Any]:
    (row,) = [row for row in service.show("services") if row["service"] == "stt"]
    return row


def speak(service: Service, session: str, sound: Path | bytes, **options: Any) -> str:
    """Stores a clip and submits it, as hermesctl does; returns the message's id."""
    if isinstance(sound, bytes):
        path = service.home / "sound"
        path.write_bytes(sound)
    else:
        path = sound
    client = service.client()
    submit = Submit(session, "", os.urandom(8).hex(), clip=store(service.places, str(path)), **options)
    return client.ask(submit, Accepted).message


def outcome(listener: Listener, message: str) -> Event:
    """The one transcript of a message, or the reason why there is none."""

    def found() -> list[Event]:
        told = listener.of_type("transcript.ready", "transcript.failed")
        return [event for event in told if event.fields["message"] == message]

    listener.until(found, AGAIN_SECONDS)
    assert len(found()) == 1
    return found()[0]


def at_work(service: Service, session: str) -> tuple[Listener, str]:
    """A session whose turn runs a command that lasts, and the command's mark."""
    mark = f"work-{os.urandom(6).hex()}"
    service.say(session, shell(sleeper(mark)))
    until(lambda: named(mark))
    return service.listen(session), mark


def asked(model: FakeModel) -> list[str]:
    """All that people are said to have said, over all requests to the model."""
    return [str(each["content"]) for request in model.requests() for each in request.messages]


def test_c1_the_running_turn_is_left_alone_until_the_words_are_there(
    service: Service, model: FakeModel
) -> None:
    listener, mark = at_work(service, "c1")
    pid = stt(service)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        message = speak(service, "c1", clip("young_man"))
        listener.until(lambda: len(listener.of_type("message.accepted")) == 2)
        (waiting,) = json.loads(service.hermesctl("queue", "c1", "--json").stdout)
        assert (waiting["message"], waiting["state"]) == (message, "transcribing")
        assert [row["state"] for row in service.show("turns", session="c1")] == ["running"]
        assert named(mark)
    finally:
        os.kill(pid, signal.SIGCONT)
    words = outcome(listener, message).fields["text"]
    stopped = listener.ending("c1/1")
    assert (stopped.type, stopped.fields["by"]) == ("turn.interrupted", message)
    assert stopped.fields["killed"]["all_dead"]
    assert named(mark) == set()
    assert listener.ending("c1/2").fields["text"] == f"You said: {words}"
    assert model.requests()[-1].messages[-1]["content"] == words
    order = ["message.accepted", "transcript.ready", "turn.interrupted", "turn.opened", "attempt.opened"]
    assert [kind for kind in listener.types()[-7:] if kind in order] == order


def test_c2_what_was_understood_is_shown_on_both_paths(service: Service) -> None:
    fresh = service.hermesctl("send", "c2", "--audio", str(clip("young_man")))
    assert fresh.returncode == 0, fresh.stderr
    words = fresh.stdout.removeprefix("You said: ").strip()
    assert errors(SAID["young_man"], words) <= 1
    assert f"🎙️ “{words}”" in fresh.stderr
    at_work(service, "c2-busy")
    busy = service.hermesctl("send", "c2-busy", "--audio", str(clip("young_man")), "--json")
    told = [json.loads(line) for line in busy.stdout.splitlines()]
    (shown,) = [event for event in told if event["type"] == "transcript.ready"]
    assert (shown["text"], shown["echo"]) == (words, True)
    assert told[-1]["type"] == "turn.done"
    sent = service.hermesctl("send", "c2", "--audio", str(clip("young_man")), "--no-wait")
    assert sent.stdout.startswith("m_")


def test_c3_one_transcript_a_clip_and_the_same_words_fresh_queued_and_as_an_interrupt(
    service: Service,
) -> None:
    fresh = service.listen("c3-fresh")
    words = outcome(fresh, speak(service, "c3-fresh", clip("leisure"))).fields["text"]
    listener, _ = at_work(service, "c3")
    queued = speak(service, "c3", clip("leisure"), busy="queue")
    assert outcome(listener, queued).fields["text"] == words
    assert [row["state"] for row in service.show("turns", session="c3")] == ["running"]
    interrupting = speak(service, "c3", clip("leisure"), busy="interrupt")
    assert outcome(listener, interrupting).fields["text"] == words
    # Nobody had begun with the queued one when the other came: one turn answers both.
    assert listener.ending("c3/2").fields["text"] == f"You said: {words}\n\n{words}"
    history = check_history(service.places.journal)
    rows = [row for row in history.messages if row["id"] in (queued, interrupting)]
    assert [row["text"] for row in rows] == [words, words]
    assert len({row["clip"] for row in rows}) == 2


def test_c8_two_passes_never_give_two_transcripts(service: Service) -> None:
    """The ears die with a clip in hand, and again right after they answered; nobody hears it twice."""
    listener, _ = at_work(service, "c8")
    pid = stt(service)["pid"]
    os.kill(pid, signal.SIGSTOP)
    interrupting = speak(service, "c8", clip("young_man"))
    os.kill(pid, signal.SIGKILL)
    words = outcome(listener, interrupting).fields["text"]
    os.kill(stt(service)["pid"], signal.SIGKILL)
    assert listener.ending("c8/2").fields["text"] == f"You said: {words}"
    assert "is taken" in service.hermesctl("retry", interrupting).stderr
    fresh = speak(service, "c8", clip("young_man"), busy="queue")
    assert outcome(listener, fresh).fields["text"] == words
    assert listener.ending("c8/3").fields["text"] == f"You said: {words}"
    history = check_history(service.places.journal)
    rows = [row for row in history.messages if row["session"] == "c8" and row["kind"] == "voice"]
    assert [(row["id"], row["text"]) for row in rows] == [(interrupting, words), (fresh, words)]
    told = [event for event in history.events if event["session"] == "c8"]
    assert [event["type"] for event in told].count("transcript.ready") == 2


def test_b5_text_behind_a_clip_does_not_overtake_it(service: Service) -> None:
    listener = service.listen("b5")
    voice = speak(service, "b5", clip("ask_not"), busy="queue")
    text = service.say("b5", "and then this", busy="queue").message
    listener.until(lambda: len(listener.of_type("turn.done")) == 2)
    assert [event.fields["messages"] for event in listener.of_type("turn.opened")] == [[voice], [text]]


def test_c6_a_clip_without_words_interrupts_nobody_and_enters_no_history(
    service: Service, model: FakeModel
) -> None:
    listener, mark = at_work(service, "c6")
    failed = outcome(listener, speak(service, "c6", file_of(silence(3.0), "ogg")))
    assert failed.type == "transcript.failed"
    assert "nothing was understood" in failed.fields["reason"]
    assert named(mark)
    assert [row["state"] for row in service.show("turns", session="c6")] == ["running"]
    service.say("c6", "hello")
    assert listener.ending("c6/2").type == "turn.done"
    assert not [text for text in asked(model) if "understood" in text or "microphone" in text]
    users = [each for each in model.requests()[-1].messages if each["role"] == "user"]
    assert len(users) == 2


def test_the_same_key_twice_is_one_clip(service: Service) -> None:
    sound = str(clip("young_man"))
    first = service.hermesctl("send", "key", "--audio", sound, "--id", "one")
    stored = set(service.places.clips.iterdir())
    again = service.hermesctl("send", "key", "--audio", sound, "--id", "one")
    assert first.stdout == again.stdout != ""
    assert set(service.places.clips.iterdir()) == stored
    assert {path.stat().st_mode & 0o777 for path in stored} == {0o600}
    assert service.places.clips.stat().st_mode & 0o777 == 0o700


def test_a_dropped_clip_is_not_transcribed_to_its_end(service: Service) -> None:
    listener = service.listen("drop")
    long = speak(service, "drop", two_windows().content)
    listener.until(lambda: listener.notes, START_SECONDS)
    assert "heard" in listener.notes[0]
    # By a connection that is there: a process that only starts may come after the clip's end.
    service.client().ask(Queue("drop", "drop", long), Done)
    after = speak(service, "drop", clip("young_man"))
    assert outcome(listener, after).type == "transcript.ready"
    assert not [event for event in listener.of_type("transcript.ready") if event.fields["message"] == long]


@pytest.mark.timeout(400)
def test_killed_in_the_middle_of_a_clip_it_is_tried_once_more(service: Service) -> None:
    listener = service.listen("kill")
    before = stt(service)
    long = speak(service, "kill", two_windows().content)
    listener.until(lambda: listener.notes, START_SECONDS)
    os.kill(before["pid"], signal.SIGKILL)
    short = speak(service, "kill", clip("young_man"))
    ready = [outcome(listener, message) for message in (long, short)]
    assert [event.type for event in ready] == ["transcript.ready", "transcript.ready"], ready
    assert ready[0].fields["text"].count("country") >= 2
    assert stt(service)["restarts"] == before["restarts"] + 1


def test_c4_a_deadline_ends_the_stuck_process_and_the_next_clip_is_heard(
    tmp_path: Path, model: FakeModel
) -> None:
    # Together with its grace shorter than the silence after which a stopped process is ended anyway.
    with hearing(tmp_path, model, 'deadline = "5s"') as service:
        until(lambda: stt(service)["state"] == "ready", START_SECONDS)
        listener, mark = at_work(service, "c4")
        before = stt(service)
        stuck = speak(service, "c4", two_windows().content)
        # At once: the service itself keeps the deadline as long as it can.
        os.kill(before["pid"], signal.SIGSTOP)
        failed = outcome(listener, stuck)
        assert failed.type == "transcript.failed"
        assert failed.fields["reason"] == "no transcript within 5 s"
        assert f"hermesctl retry {stuck}" in failed.fields["hint"]
        assert named(mark)
        (row,) = [row for row in check_history(service.places.journal).messages if row["id"] == stuck]
        assert (service.places.clips / row["clip"]).exists()
        assert outcome(listener, speak(service, "c4", clip("young_man"))).type == "transcript.ready"
        assert stt(service)["pid"] != before["pid"]


def test_a_killed_supervisor_takes_its_clips_up_again(service: Service) -> None:
    listener = service.listen("again")
    spoken = speak(service, "again", two_windows().content)
    listener.until(lambda: listener.notes, START_SECONDS)
    service.kill()
    service.start()
    again = service.listen("again", after=1)
    assert outcome(again, spoken).type == "transcript.ready"
    assert again.ending("again/1", START_SECONDS).type == "turn.done"
    assert again.types().count("transcript.ready") == 1


def test_c5_missing_weights_are_named_with_their_remedy_and_once_mended_the_clip_is_retried(
    tmp_path: Path, model: FakeModel
) -> None:
    with Service(tmp_path / "home", settings_for(model, workers="count = 2", stt="echo = true")) as service:
        listener, mark = at_work(service, "c5")
        assert "models pull" not in service.hermesctl("status").stdout
        sent = service.hermesctl("send", "c5", "--audio", str(clip("young_man")))
        assert sent.returncode == 4
        assert "there are no weights of tiny.en" in sent.stderr
        assert "hermesctl models pull tiny.en" in sent.stderr
        assert named(mark)
        # It is tried again by itself; between two tries the table names the fault and its remedy.
        until(lambda: "hermesctl models pull tiny.en" in service.hermesctl("services").stdout)
        assert "voice is not understood" in service.hermesctl("status").stdout
        shutil.copytree(pulled("tiny.en") / "tiny.en", service.places.models / "tiny.en")
        until(lambda: stt(service)["state"] == "ready", START_SECONDS)
        listener.until(lambda: listener.of_type("transcript.failed"))
        refused = listener.of_type("transcript.failed")[0].fields["message"]
        service.interrupt("c5")
        retried = service.hermesctl("retry", refused)
        assert retried.returncode == 0, retried.stderr
        assert errors(SAID["young_man"], retried.stdout.removeprefix("You said: ")) <= 1
        twice = service.hermesctl("retry", "c5/2")
        assert twice.returncode == 5
        understood = message_understood(service, "c5")
        assert "is taken" in service.hermesctl("retry", understood).stderr


def message_understood(service: Service, session: str) -> str:
    """The message whose words were understood."""
    listener = service.listen(session)
    listener.until(lambda: listener.of_type("transcript.ready"))
    return str(listener.of_type("transcript.ready")[0].fields["message"])


def test_voice_that_is_switched_off_says_so_and_a_clip_is_forgotten_with_its_message(
    tmp_path: Path, model: FakeModel
) -> None:
    with Service(tmp_path / "home", settings_for(model, workers="count = 1")) as service:
        assert service.show("services") == []
        sent = service.hermesctl("send", "off", "--audio", str(clip("young_man")))
        assert sent.returncode == 4
        assert "voice is switched off" in sent.stderr
        assert "[stt] engine" in sent.stderr
        (kept,) = service.places.clips.iterdir()
        os.utime(kept, (0, kept.stat().st_mtime - 2 * 3600))
        just_stored = service.places.clips / store(service.places, str(clip("leisure")))
        pruned = service.hermesctl("journal", "prune", "--older", "0.001s", "--json")
        assert json.loads(pruned.stdout)["messages"] == 1, pruned
        until(lambda: not kept.exists())
        assert just_stored.exists()
