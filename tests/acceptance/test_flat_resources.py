"""Interrupts, deaths, reconnects, subscribers and clips leave nothing behind: everything is counted."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from hermesctl.client import Client
from hermesctl.clip_upload import store
from ipc.messages import Accepted, Show, Submit, Subscribe, Subscribed, Table, Unsubscribe
from tests.acceptance.resources import ROOM, grown, resources
from tests.acceptance.sight import worker_of
from tests.service import Service
from tests.waiting import until

# The first ones make what is made once: threads, connections, caches.
_FIRST, _FURTHER = 20, 100
_CLIENTS_FIRST, _CLIENTS_FURTHER = 20, 200
_CLIPS_FIRST, _CLIPS_FURTHER = 5, 40


def settled(service: Service) -> dict[str, int]:
    """The counts once all workers are idle and the next cell is prepared."""
    others = 4  # the supervisor, the guard, the zygote and the prepared cell

    def is_settled() -> bool:
        rows, found = service.show("workers"), resources(service)
        return all(row["state"] == "idle" for row in rows) and found["processes"] == len(rows) + others

    until(is_settled)
    return resources(service)


def check_flat(service: Service, before: dict[str, int]) -> None:
    """A thread that looks at the host has a file open for a moment, and a link closes within a second."""
    found: dict[str, str] = {}

    def is_flat() -> bool:
        found.clear()
        found.update(grown(before, settled(service), ROOM))
        return not found

    with contextlib.suppress(AssertionError):
        until(is_flat)
    assert found == {}


def is_over(service: Service, session: str) -> bool:
    """Asked on the one connection of the test: a listener would be counted with what is left behind."""
    (turn,) = service.show("turns", session=session)
    return turn["state"] in ("failed", "interrupted")


def cut_short(service: Service, count: int, start: int) -> None:
    """So many turns, in turn interrupted and deprived of their worker."""
    for number in range(start, start + count):
        session = f"s{number}"
        service.say(session, "[[silent]] go")
        worker = worker_of(service, session)
        if number % 2:
            os.kill(worker, signal.SIGKILL)
        else:
            service.interrupt(session)
        until(lambda session=session: is_over(service, session))  # type: ignore[misc]


def come_and_go(service: Service, count: int) -> None:
    """So many clients: each asks and subscribes, and leaves in its own way; and connections of strangers."""
    for number in range(count):
        with contextlib.closing(Client(service.places)) as client:
            client.ask(Show("sessions"), Table)
            follow = client.post(Subscribe(f"s{number}", 0))
            client.answer_to(follow, Subscribed)
            client.answer_to(client.post(Subscribe(None)), Subscribed)
            if number % 2:
                client.post(Unsubscribe(follow))
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(service.places.control)
            stranger.sendall(b"\xff" * (number % 80))


def speak(service: Service, count: int, sound: Path) -> None:
    """Voice is switched off: each clip fails, and is kept."""
    with contextlib.closing(Client(service.places)) as client:
        for number in range(count):
            clip = store(service.places, str(sound))
            client.ask(Submit(f"voice{number % 5}", "", os.urandom(8).hex(), clip=clip), Accepted)


def test_interrupts_and_deaths_of_workers_leave_nothing_behind(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1\nspares = 1", turns="attempts_max = 1")
    cut_short(service, _FIRST, 0)
    before = settled(service)
    cut_short(service, _FURTHER, _FIRST)
    check_flat(service, before)


def test_clients_subscribers_and_clips_that_come_and_go_leave_nothing_behind(
    make_service: Callable[..., Service], tmp_path: Path
) -> None:
    service = make_service(workers="count = 1\nspares = 1")
    sound = tmp_path / "sound"
    sound.write_bytes(b"OggS" + bytes(1000))
    come_and_go(service, _CLIENTS_FIRST)
    speak(service, _CLIPS_FIRST, sound)
    before = settled(service)
    come_and_go(service, _CLIENTS_FURTHER)
    speak(service, _CLIPS_FURTHER, sound)
    # Those are of messages that are in the journal, and go with them.
    before["clips"] += _CLIPS_FURTHER
    check_flat(service, before)
    for clip in service.places.clips.iterdir():
        os.utime(clip, (0, 0))
    assert service.hermesctl("journal", "prune", "--older", "0.001s").returncode == 0
    until(lambda: settled(service)["clips"] == 0)
