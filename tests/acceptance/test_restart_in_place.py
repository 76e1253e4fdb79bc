"""The service replaces itself in place: running turns go on in the same processes and lose no word."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Done, HandOver
from tests.acceptance.sight import alive, descendants, shell, worker_of
from tests.checker import check_history
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until


def hand_over(service: Service) -> tuple[str, ...]:
    """Returns when the next image answers, with the turns that were kept."""
    client = service.client()
    turns = client.ask(HandOver(), Done, 60).turns
    until(client.is_lost)
    until(service.answers, 60)
    return turns


ENDLESS = "[[slow interval=0.02 count=100000]] go on"


def check_words(text: str, at_least: int) -> None:
    """Every word once and in order."""
    said = text.split()
    assert said == [f"word{number}" for number in range(len(said))]
    assert len(said) > at_least


def test_a_running_turn_goes_on_in_its_process_and_loses_no_word(service: Service, model: FakeModel) -> None:
    assert service.process is not None
    service.say("demo", ENDLESS)
    first = service.listen("demo")
    first.until(lambda: "word20 " in first.words)
    worker = worker_of(service, "demo")
    assert hand_over(service) == ("demo/1",)
    assert service.status()["pid"] == service.process.pid, "the process itself stays"
    assert worker_of(service, "demo") == worker
    second = service.listen("demo")
    second.until(lambda: second.words)
    # What was said until now comes at once; all that follows was said to the next image.
    before = len(second.words)
    second.until(lambda: len(second.words) > before + 200)
    service.interrupt("demo")
    ended = second.ending("demo/1")
    check_words(ended.fields["partial"], at_least=40)
    check_words(second.words, at_least=40)
    assert [event.type for event in second.of_type("attempt.opened", "attempt.lost")] == ["attempt.opened"]
    assert len(model.requests()) == 1, "the model was asked once"
    assert not alive([worker])
    service.say("demo", "and now?")
    assert second.ending("demo/2").type == "turn.done", "the next image has workers of its own"
    check_history(service.places.journal)


def test_a_tool_at_work_is_not_run_again(open_service: Service, shared: Path) -> None:
    service, trace, go = open_service, shared / "trace", shared / "go"
    command = f"echo ran >> {trace}; while [ ! -e {go} ]; do sleep 0.05; done; echo finished"
    service.say("demo", shell(command))
    until(trace.exists)
    hand_over(service)
    go.touch()
    listener = service.listen("demo")
    assert listener.ending("demo/1").type == "turn.done"
    assert trace.read_text() == "ran\n"
    [finished] = listener.of_type("tool.finished")
    assert finished.fields["ok"]
    check_history(service.places.journal)


def test_what_is_kept_can_still_be_interrupted_and_what_waits_is_answered(
    service: Service, model: FakeModel
) -> None:
    service.say("demo", "[[silent]] for ever")
    model.wait(lambda requests: bool(requests))
    service.say("demo", "and then?", busy="queue")
    worker = worker_of(service, "demo")
    assert hand_over(service) == ("demo/1",)
    listener = service.listen("demo")
    service.interrupt("demo")
    ended = listener.ending("demo/1")
    assert ended.fields["killed"]["all_dead"]
    assert ended.fields["killed"]["processes"] >= 1
    assert not alive([worker])
    assert service.hermesctl("queue", "demo", "resume").returncode == 0
    assert listener.ending("demo/2").type == "turn.done"
    check_history(service.places.journal)


def test_one_restart_after_another_keeps_the_same_turn(service: Service, model: FakeModel) -> None:
    service.say("demo", ENDLESS)
    listener = service.listen("demo")
    listener.until(lambda: "word5 " in listener.words)
    for _ in range(3):
        assert hand_over(service) == ("demo/1",)
    again = service.listen("demo")
    service.interrupt("demo")
    check_words(again.ending("demo/1").fields["partial"], at_least=5)
    assert len(model.requests()) == 1


def test_broken_settings_are_refused_and_the_service_goes_on(service: Service) -> None:
    service.say("demo", "[[silent]] for ever")
    worker = worker_of(service, "demo")
    (service.home / "hermes.toml").write_text("[workers]\nseats = 3\n")
    with pytest.raises(CommandError, match=r"the next start would fail.*seats"):
        service.client().ask(HandOver(), Done, 60)
    assert worker_of(service, "demo") == worker
    assert service.status()["state"] == "ready"


def test_a_kept_worker_dies_with_a_supervisor_that_is_killed_afterwards(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service()
    assert service.process is not None
    service.say("demo", "[[silent times=1]] go")
    model.wait(lambda requests: bool(requests))
    assert hand_over(service) == ("demo/1",)
    family = descendants(service.process.pid)
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait()
    until(lambda: not alive(family))
    service.start()
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    check_history(service.places.journal)


@pytest.mark.parametrize("moment", ["gathering", "closing", "importing"])
def test_a_stop_in_the_middle_of_the_restart_is_not_forgotten(
    service: Service, model: FakeModel, moment: str
) -> None:
    assert service.process is not None
    pid = service.process.pid
    service.say("demo", "[[silent times=1]] go")
    model.wait(lambda requests: bool(requests))
    family = descendants(pid)
    client = service.client()
    client.ask(HandOver(), Done, 60)
    if moment == "closing":
        until(client.is_lost)
    elif moment == "importing":
        until(lambda: b"--handover" in Path(f"/proc/{pid}/cmdline").read_bytes())
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(30) == 0
    until(lambda: not alive(family))
    service.start()
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    check_history(service.places.journal)
