"""Queues that are really full: what cannot be sent is an event or comes later, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from supervisor.workers.link import UNSENT_BYTES_MAX
from tests import warm
from tests.acceptance.sight import worker_of
from tests.acceptance.test_messages import taken
from tests.fake_model import FakeModel
from tests.service import Listener, Service

HOSTILE = "tests.acceptance.hostile_supervisor"
# Characters of a message that is a large part of a queue.
LONG = 1_000_000
# Megabytes go through the model and the journal, on a machine that has other work.
BUSY_SECONDS = 120.0


def steered(service: Service, model: FakeModel, count: int, characters: int) -> tuple[Listener, list[str]]:
    """Messages for a worker that is stopped in the middle of its turn; and all that were said, by id."""
    model.set_mode("silent", times=1)
    sent = [service.say("demo", "hold").message]
    model.wait(lambda requests: len(requests) == 1)
    os.kill(worker_of(service, "demo"), signal.SIGSTOP)
    for number in range(count):
        text = f"{number} ".ljust(characters, "x")
        sent.append(service.say("demo", text, busy="steer").message)
    # Not before: a subscriber that does not read meanwhile would be given up.
    return service.listen("demo"), sent


def test_b6_a_worker_whose_queue_is_full_is_an_event_and_nothing_is_lost(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    """It is stopped, and ended for what it does not read, long before its pulse is missed."""
    service = make_service(HOSTILE, workers='count = 1\npulse = "60s"')
    listener, sent = steered(service, model, 10, 90_000)
    listener.until(lambda: listener.of_type("attempt.lost"))
    assert listener.of_type("attempt.lost")[0].fields["reason"] == "it does not read its frames"
    # Whatever the next turns have taken together, none is missing and the order is kept.
    listener.until(lambda: taken(listener.events) == sent, BUSY_SECONDS)


def test_b6_more_than_a_queue_holds_is_sent_as_the_worker_takes_it(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers='count = 1\npulse = "4s"')
    assert 14 * LONG > UNSENT_BYTES_MAX
    listener, sent = steered(service, model, 14, LONG)
    listener.until(lambda: taken(listener.events) == sent, BUSY_SECONDS)
    # The stopped one; those after it read what they are sent.
    (lost,) = listener.of_type("attempt.lost")
    assert "sign of life" in lost.fields["reason"]


def test_b6_a_client_whose_queue_is_full_gets_every_event_once_when_it_reads_again(service: Service) -> None:
    service.say("demo", "[[silent]] begin")
    tailing = ["--home", str(service.home), "tail", "demo", "--after", "0", "--json"]
    with warm.Popen[str](
        [sys.executable, "-m", "hermesctl", *tailing], stdout=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        try:
            told = [json.loads(tail.stdout.readline())]
            os.kill(tail.pid, signal.SIGSTOP)
            # All in far more than its queue and the kernel hold.
            sent = [service.say("demo", letter * LONG, busy="queue").message for letter in "abcdefgh"]
            os.kill(tail.pid, signal.SIGCONT)
            while told[-1].get("message") != sent[-1]:
                told.append(json.loads(tail.stdout.readline()))
        finally:
            tail.kill()
    listener = service.listen("demo")
    listener.until(lambda: len(listener.of_type("message.accepted")) == 9, BUSY_SECONDS)
    durable = [(event["seq"], event["type"]) for event in told if "seq" in event]
    assert durable == [(event.seq, event.type) for event in listener.events][-len(durable) :]
    assert len(durable) > 8
