"""What a client has seen of an answer is not lost when whoever spoke it dies in the middle."""

import json
import os
import signal
import time
from itertools import pairwise

from ipc.messages import Delta
from tests.acceptance.sight import worker_of
from tests.checker import check_history
from tests.fake_model import FakeModel
from tests.service import Listener, Service

# The promise; how late the machine itself was is seen and added.
LAST_MOMENT_SECONDS = 0.25


def begin(service: Service, text: str) -> Listener:
    service.say("demo", text)
    return service.listen("demo")


def told_again(model: FakeModel) -> str:
    """All that the model was sent with the second attempt, as one text."""
    return json.dumps(model.wait(lambda requests: len(requests) > 1)[1].messages)


def test_d11_all_that_a_client_saw_survives_the_death_of_the_worker(
    service: Service, model: FakeModel
) -> None:
    listener = begin(service, "[[slow interval=0.02 count=200]] go")
    listener.until(lambda: "word20" in listener.words)
    os.kill(worker_of(service, "demo"), signal.SIGKILL)
    listener.until(lambda: listener.of_type("attempt.lost"))
    seen_words = words_of(listener, attempt=1)
    assert seen_words.strip() in told_again(model)
    service.interrupt("demo")


def test_d11_all_but_the_last_moment_survives_the_death_of_the_supervisor(
    service: Service, model: FakeModel
) -> None:
    listener = begin(service, "[[slow interval=0.02 count=400]] go")
    heard: list[tuple[float, int]] = []

    def listen() -> bool:
        heard.append((time.monotonic(), len(listener.words)))
        return "word80 " in listener.words

    listener.until(listen)
    killed_at = time.monotonic()
    service.kill()
    service.start()
    safe = max(length for at, length in heard if at <= killed_at - LAST_MOMENT_SECONDS - lateness(heard))
    assert safe > 0
    assert listener.words[:safe].strip() in told_again(model)
    service.interrupt("demo")
    check_history(service.places.journal)


def lateness(heard: list[tuple[float, int]]) -> float:
    """The longest that words which were spoken every 20 ms kept everybody waiting."""
    return max(after - before for (before, _), (after, _) in pairwise(heard))


def words_of(listener: Listener, attempt: int) -> str:
    pieces = [heard for heard in listener.heard if isinstance(heard, Delta) and heard.attempt == attempt]
    for before, after in pairwise(pieces):
        assert after.offset == before.offset + len(before.text), "a word is missing or doubled"
    return "".join(piece.text for piece in pieces)
