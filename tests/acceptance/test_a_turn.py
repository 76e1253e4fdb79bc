"""A turn goes from a client through the supervisor to a worker process and back, whatever dies on the way."""

import os
import signal
from collections.abc import Callable
from functools import partial

from tests.fake_model import FakeModel
from tests.service import Listener, Service, lines
from tests.waiting import until


def busy_pid(service: Service) -> int:
    """The worker of the one running turn."""

    def found() -> int:
        pids = [row["pid"] for row in service.show("workers") if row["state"] == "busy" and row["turn"]]
        return pids[0] if pids else 0

    return until(found)


def _has_opened(listener: Listener, attempts: int) -> bool:
    return len(listener.of_type("attempt.opened")) == attempts


def test_an_answer_streams_and_the_next_turn_knows_the_context(service: Service, model: FakeModel) -> None:
    first = service.hermesctl("send", "demo", "my dog is called Rex")
    assert (first.returncode, first.stdout) == (0, "You said: my dog is called Rex\n"), first.stderr
    model.set_mode("recite")
    second = service.hermesctl("send", "demo", "what is my dog called?")
    assert "my dog is called Rex" in second.stdout
    assert [message["role"] for message in model.requests()[1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


def test_every_event_of_a_turn_is_told_once_and_in_order(service: Service) -> None:
    sent = service.hermesctl("send", "demo", "hello", "--json")
    told = [event for event in lines(sent.stdout) if event["type"] != "delta"]
    assert [event["type"] for event in told] == [
        "message.accepted",
        "turn.opened",
        "attempt.opened",
        "turn.done",
    ]
    assert [event["seq"] for event in told] == [1, 2, 3, 4]
    words = "".join(event["text"] for event in lines(sent.stdout) if event["type"] == "delta")
    assert words == told[-1]["text"] == "You said: hello"


def test_a_worker_killed_mid_answer_is_replaced_and_the_turn_tried_again(service: Service) -> None:
    service.say("demo", "[[slow interval=0.05 count=40]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    os.kill(busy_pid(service), signal.SIGKILL)
    ended = listener.ending("demo/1")
    assert ended.type == "turn.done"
    assert "SIGKILL" in listener.of_type("attempt.lost")[0].fields["reason"]
    assert [event.fields["attempt"] for event in listener.of_type("attempt.opened")] == [1, 2]
    until(lambda: service.status()["idle"] == 3)


def test_a_turn_that_kills_its_worker_every_time_is_closed_with_the_reason(service: Service) -> None:
    service.say("demo", "[[slow interval=0.05 count=400]] go")
    listener = service.listen("demo")
    for attempt in (1, 2, 3):
        opened = partial(_has_opened, listener, attempt)
        listener.until(opened)
        os.kill(busy_pid(service), signal.SIGKILL)
    ended = listener.ending("demo/1")
    assert ended.type == "turn.failed"
    assert "lost 3 times" in ended.fields["error"]
    assert service.hermesctl("send", "demo", "still there?").stdout == "You said: still there?\n"


def test_a_supervisor_killed_mid_answer_takes_the_turn_up_again(service: Service) -> None:
    service.say("demo", "[[slow interval=0.05 count=40]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word5" in listener.words)
    service.kill()
    service.start()
    again = service.listen("demo", after=listener.events[-1].seq)
    ended = again.ending("demo/1")
    assert ended.type == "turn.done"
    assert again.types()[:2] == ["attempt.lost", "attempt.opened"]
    assert service.status()["epoch"] == 2


def test_an_orderly_stop_leaves_the_turn_for_the_next_start(service: Service) -> None:
    service.say("demo", "[[slow interval=0.05 count=40]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word2" in listener.words)
    assert service.stop() == 0
    service.start()
    assert service.listen("demo").ending("demo/1").type == "turn.done"


def test_the_same_key_is_one_message_also_after_a_restart(service: Service) -> None:
    first = service.say("demo", "once", key="k1")
    service.listen("demo").ending("demo/1")
    service.kill()
    service.start()
    second = service.say("demo", "once", key="k1")
    assert (second.message, second.seq, second.again) == (first.message, first.seq, True)
    assert len(service.show("turns")) == 1


def test_a_client_that_joins_in_the_middle_hears_what_was_said_before(service: Service) -> None:
    service.say("demo", "[[slow interval=0.05 count=30]] go")
    first = service.listen("demo")
    first.until(lambda: "word9" in first.words)
    second = service.listen("demo")
    ended = second.ending("demo/1")
    assert second.words == ended.fields["text"]


def test_turns_beyond_the_seats_queue_visibly(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    for name in ("a", "b", "c"):
        service.say(name, "[[slow interval=0.02 count=30]] go")
    until(lambda: len(service.show("turns", state="queued")) == 2)
    for name in ("a", "b", "c"):
        assert service.listen(name).ending(f"{name}/1").type == "turn.done"
