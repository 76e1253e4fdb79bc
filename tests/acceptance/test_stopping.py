"""A stop: bounded whatever workers and services do, and it says what it waits for."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipc.messages import Done, Stop
from ipc.time_budgets import STOP_SECONDS
from tests.acceptance.sight import alive, descendants, named, shell, state_of, zygote_of
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until

# A speech service that needs no weights: the server it would ask is never asked.
EARS = 'engine = "openai"\nbase_url = "http://127.0.0.1:1/v1"'
# It ignores every signal that can be ignored, in a session of its own, and starts what it lost anew.
STUBBORN = """
trap '' TERM INT HUP QUIT USR1 USR2
(setsid bash -c 'trap "" TERM INT HUP; while :; do (exec -a {mark} sleep 300); done' &)
while :; do (exec -a {mark} sleep 300); done
"""
# Half a gigabyte that the kernel has to give back.
HEAVY = """exec -a {mark} {python} -c 'held = b"x" * 500_000_000; import time; time.sleep(300)'"""
STOPPED = """(exec -a {mark} sleep 300) & kill -STOP $PPID; wait"""


def stt(service: Service) -> dict[str, Any]:
    return next(row for row in service.show("services") if row["service"] == "stt")


def test_e1_a_stop_keeps_its_budget_whatever_workers_and_services_do(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(workers="count = 3", stt=EARS)
    assert service.process is not None
    mark = f"stop-{os.urandom(6).hex()}"
    for session, command in (("stubborn", STUBBORN), ("heavy", HEAVY), ("stopped", STOPPED)):
        service.say(session, shell(command.format(mark=mark, python=sys.executable)))
    until(lambda: len(named(mark)) >= 4)
    until(lambda: any(_memory_bytes(pid) > 500_000_000 for pid in named(mark)))
    until(lambda: stt(service)["state"] == "ready")
    os.kill(stt(service)["pid"], signal.SIGSTOP)
    family = descendants(service.process.pid)
    began = time.monotonic()
    stopped = service.hermesctl("stop")
    assert time.monotonic() - began < STOP_SECONDS
    assert (stopped.returncode, stopped.stdout) == (0, f"stopped, pid {service.process.pid}\n")
    assert service.process.wait() == 0
    # Orphans are dead by now; the machine's init still has to count them out.
    until(lambda: not alive(family), deadline_seconds=5)
    assert named(mark) == set()


def test_e1_a_stop_says_what_it_waits_for(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", stt=EARS)
    assert service.process is not None
    until(lambda: stt(service)["state"] == "ready")
    assert service.status()["waits_for"] == ""
    family = descendants(service.process.pid)
    guard = int(Path(f"/proc/{zygote_of(service)}/stat").read_text().rpartition(") ")[2].split()[1])
    for pid in (stt(service)["pid"], guard):
        os.kill(pid, signal.SIGSTOP)
        until(lambda pid=pid: state_of(pid) == "T")  # type: ignore[misc]
    client = service.client()
    client.ask(Stop(), Done)
    assert service.status()["waits_for"].startswith("waiting for ")
    assert service.process.wait(STOP_SECONDS + 5) == 0
    until(lambda: not alive(family), deadline_seconds=5)


def _memory_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def test_a_folder_that_stands_in_for_a_long_path_goes_with_a_clean_stop(
    tmp_path: Path, model: FakeModel
) -> None:
    home = tmp_path / ("long" * 30)
    with Service(home, settings_for(model, workers="count = 1")) as service:
        stand_in = service.places.runtime
        assert home not in stand_in.parents
        service.kill()
        assert stand_in.exists()
        service.start()
        assert service.hermesctl("send", "demo", "hello").returncode == 0
        assert service.hermesctl("stop").returncode == 0
        assert not stand_in.exists()
        assert service.hermesctl("status").returncode == 69
