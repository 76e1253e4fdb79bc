"""A good citizen of its host: what workers do to their machine, the supervisor and the others do not feel."""

import contextlib
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import Show, Submit, Table
from ipc.places import find_places, is_listening
from tests import warm
from tests.acceptance.crashing_worker import CRASHING_SEAT, LAST_WORDS
from tests.acceptance.sight import alive, calls, shell, stopped, worker_of
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

ROUND_TRIPS = 200
SPINNING = "tests.acceptance.spinning_supervisor"
MARK = "spinning"
# The promise. On a machine that has other work to do as well, it is this many times what a loop takes there
# that has nothing to do.
ROUND_TRIP_SECONDS_MAX = 0.05
SLOWER_THAN_IDLE_MAX = 4.0


@pytest.fixture
def spinning(
    make_service: Callable[..., Service],
    model: FakeModel,
    monkeypatch: pytest.MonkeyPatch,
    shared: Path,
) -> Callable[..., tuple[Service, list[int]]]:
    """A service all of whose seats have a turn, each in a worker that spins with the interpreter lock."""
    mark = shared / MARK
    monkeypatch.setenv("HERMES_TEST_SPINNING", str(mark))

    def make(seats: int) -> tuple[Service, list[int]]:
        service = make_service(SPINNING, workers=f"count = {seats}", sandbox=f'write = ["{shared}"]')
        for number in range(seats):
            service.say(f"s{number}", "[[silent]] wait")
        # An agent runs once the echo of pulses has begun; a signal would not wait for that.
        model.wait(lambda requests: len(requests) >= seats)
        pids = [worker_of(service, f"s{number}") for number in range(seats)]
        for pid in pids:
            begin(mark, pid, signal.SIGUSR1)
        return service, pids

    return make


def begin(mark: Path, pid: int, number: signal.Signals) -> None:
    """Tells a worker of SPINNING what to do, and returns when it does it."""
    mark.unlink(missing_ok=True)
    os.kill(pid, number)
    until(mark.exists)


def _rows(service: Service) -> dict[int, dict[str, Any]]:
    return {row["pid"]: row for row in service.show("workers")}


@contextlib.contextmanager
def idle_loop(folder: Path) -> Iterator[Client]:
    """A client of a loop that has nothing else to do."""
    places = find_places(str(folder))
    places.runtime.mkdir(parents=True)
    with warm.Popen[bytes]([sys.executable, "-m", "tests.acceptance.idle_loop", places.control]) as process:
        try:
            until(lambda: is_listening(places.control))
            with contextlib.closing(Client(places)) as client:
                yield client
        finally:
            process.kill()


def p99_seconds(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def round_trip_seconds(client: Client) -> float:
    began = time.monotonic()
    client.ask(Show("workers"), Table)
    return time.monotonic() - began


def test_e2_with_every_worker_spinning_the_loop_keeps_50_ms_and_interrupts(
    spinning: Callable[..., tuple[Service, list[int]]], tmp_path: Path
) -> None:
    service, pids = spinning(4)
    client = service.client()
    with idle_loop(tmp_path / "idle") as idle:
        pairs = [(round_trip_seconds(client), round_trip_seconds(idle)) for _ in range(ROUND_TRIPS)]
    here, there = (p99_seconds(list(times)) for times in zip(*pairs, strict=True))
    assert here < max(ROUND_TRIP_SECONDS_MAX, SLOWER_THAN_IDLE_MAX * there), (here, there)
    service.interrupt("s0")
    closed = service.listen("s0").ending("s0/1")
    assert closed.fields["killed"]["all_dead"]
    assert alive(pids) == set(pids[1:])


def test_e5_each_kind_of_life_has_its_own_limit_and_its_own_word(
    make_service: Callable[..., Service], model: FakeModel, monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    """A process that is stopped, a loop that stands still while idle, an agent that keeps the interpreter."""
    monkeypatch.setenv("HERMES_TEST_SPINNING", str(shared / MARK))
    service = make_service(
        SPINNING,
        workers='count = 2\nspares = 1\npulse = "5s"',
        turns='silence = "20s"\nattempts_max = 1',
        sandbox=f'write = ["{shared}"]',
    )
    sessions = ("stopped", "keeping")
    for session in sessions:
        service.say(session, "[[silent]] wait")
    model.wait(lambda requests: len(requests) == 2)
    stopped_pid, keeping_pid = (worker_of(service, session) for session in sessions)
    (idle,) = until(lambda: [row for row in service.show("workers") if row["state"] == "idle"])
    table = service.hermesctl("workers")
    assert all(word in table.stdout for word in ("PROCESS", "LOOP", "PROGRESS")), table
    begin(shared / MARK, idle["pid"], signal.SIGUSR2)
    begin(shared / MARK, keeping_pid, signal.SIGWINCH)
    os.kill(stopped_pid, signal.SIGSTOP)

    def beyond_the_limit_of_a_process() -> list[dict[str, Any]]:
        rows = [_rows(service)[pid] for pid in (keeping_pid, idle["pid"])]
        return rows if min(row["loop"] for row in rows) > 6 else []

    keeping, standing = until(beyond_the_limit_of_a_process)
    assert (keeping["state"], standing["state"]) == ("busy", "idle")
    assert max(keeping["process"], standing["process"]) < 5
    assert keeping["progress"] >= keeping["loop"] - 2
    assert reason_of_failure(service, "stopped") == "its process gave no sign of life for 5 s"

    until(lambda: idle["pid"] not in _rows(service))
    assert "its loop stood still for 20 s" in service.log()
    assert reason_of_failure(service, "keeping") == "no progress for 20 s"
    assert not alive([stopped_pid, keeping_pid, idle["pid"]])


def reason_of_failure(service: Service, session: str) -> str:
    """Why the only attempt at a session's first turn was lost."""
    listener = service.listen(session)
    assert listener.ending(f"{session}/1").type == "turn.failed"
    (lost,) = listener.of_type("attempt.lost")
    return str(lost.fields["reason"])


def test_e4_a_worker_that_eats_memory_ends_with_that_reason_and_no_other(
    make_service: Callable[..., Service], shared: Path
) -> None:
    gate = shared / "open"
    service = make_service(workers='count = 2\nmemory_max = "200MiB"', sandbox=f'read = ["{shared}"]')
    service.say("modest", shell(f"until [ -e {gate} ]; do sleep 0.05; done"))
    modest = worker_of(service, "modest")
    hoards = "hoard = bytearray(b'x') * (400 << 20); import time; time.sleep(300)"
    service.say("greedy", shell(f'exec {sys.executable} -c "{hoards}"'))
    listener = service.listen("greedy")
    # The second attempt is told that its call had no known outcome, and the fake model leaves it at that.
    assert listener.ending("greedy/1").type == "turn.done"
    lost = [event.fields["reason"] for event in listener.of_type("attempt.lost")]
    assert lost == ["it used more than 200 MiB of memory"]
    assert worker_of(service, "modest") == modest
    gate.touch()
    ending = service.listen("modest")
    assert ending.ending("modest/1").type == "turn.done"
    assert len(ending.of_type("attempt.opened")) == 1


def seats(service: Service) -> dict[int, dict[str, Any]]:
    return {row["seat"]: row for row in service.show("workers")}


def test_e6_workers_that_crash_or_cannot_start_become_failed_and_the_rest_goes_on(
    make_service: Callable[..., Service],
) -> None:
    """One seat has no log to write to; the process of the other one crashes in native code."""
    service = make_service("tests.acceptance.crashing_supervisor", workers="count = 2")
    (service.places.logs / "worker-3.log").mkdir()
    service.hermesctl("scale", "4")
    until(lambda: {seats(service)[seat]["state"] for seat in (3, CRASHING_SEAT)} <= {"resting", "failed"})
    service.say("demo", "hello")
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    until(lambda: {seats(service)[seat]["state"] for seat in (3, CRASHING_SEAT)} == {"failed"})
    last_words = {3: ("could not be started", "Is a directory"), CRASHING_SEAT: ("SIGSEGV", LAST_WORDS)}
    late = {each["what"]: each["detail"] for each in service.status()["late"]}
    for seat, words in last_words.items():
        # Five starts with a rest between any two, where a loop without rest would make thousands.
        assert len(re.findall(rf"worker\.started worker={seat}\b", service.log())) == 5
        for word in words:
            assert word in seats(service)[seat]["words"]
            assert word in late[f"worker {seat}"]
    assert "2 workers cannot start" in str(service.status()["hints"])
    assert {seats(service)[seat]["state"] for seat in (0, 1, 2)} == {"idle"}


def test_e7_an_agent_that_kills_everything_reaches_only_itself(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 2", turns="attempts_max = 1")
    assert service.process is not None
    if "namespaces" not in service.status()["cell"]:
        pytest.skip("only a cell with namespaces keeps workers from each other")
    service.say("other", "[[silent]] wait")
    other = worker_of(service, "other")
    supervisor = service.process.pid
    commands = [
        f"kill -9 {supervisor}",
        f"kill -9 {other}",
        f"head -c 1 /proc/{supervisor}/mem",
        f"head -c 1 /proc/{other}/mem",
        f"cat {service.places.journal}",
        f"ls {service.places.state}/token",
    ]
    service.say("demo", calls([{"command": command} for command in commands]))
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    results = [m["content"] for m in model.requests()[-1].messages if m["role"] == "tool"]
    assert len(results) == len(commands)
    assert not any(result.startswith("[exit status 0]") for result in results), results
    # Not where it could reach any process of this user, as the one that runs the tests.
    strike = "pkill -9 python; pkill -9 -f supervisor; kill -9 -1"
    service.say("demo", shell(f"kill -0 {supervisor} || {{ {strike}; }}"))
    service.listen("demo").ending("demo/2")  # in whatever way: what it could reach was its own
    assert service.process.poll() is None
    assert worker_of(service, "other") == other
    service.say("demo", "hello")
    assert service.listen("demo").ending("demo/3").type == "turn.done"


def test_e9_a_loop_that_stood_still_is_told_with_its_time(service: Service) -> None:
    assert service.process is not None
    assert service.status()["late"] == []
    client = service.client()
    with stopped(service.process.pid), pytest.raises(NotRunning):
        client.ask(Show("status"), Table, timeout_seconds=1.0)
    late = until(lambda: service.status()["late"])
    assert [each["what"] for each in late] == ["loop"]
    assert late[0]["seconds"] >= 0.5
    assert "stood still for" in late[0]["detail"]
    assert service.status()["lag_ms"] > 500


def test_e9_an_engine_that_decides_nothing_is_named_with_its_time(
    make_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = tmp_path / "stuck"
    monkeypatch.setenv("HERMES_TEST_STUCK", str(mark))
    service = make_service("tests.acceptance.stuck_engine", workers="count = 1")
    assert service.status()["late"] == []
    mark.touch()
    began = time.time()
    service.client().post(Submit("demo", "hello", "key"))
    (late,) = until(lambda: service.status()["late"])
    assert (late["what"], late["detail"]) == ("engine", "it decides nothing, and events wait")
    # A sign of life of a worker may have come before the message.
    assert began - 2 < late["since"] < began + DEADLINE_SECONDS
    assert late["seconds"] >= 1
    assert "late: engine for" in service.hermesctl("status").stdout
    # It is nobody else's fault.
    assert service.status()["lag_ms"] < 500
    service.kill()


def test_e9_a_commit_that_does_not_come_back_is_named_with_its_time(service: Service) -> None:
    with contextlib.closing(sqlite3.connect(service.places.journal, isolation_level=None)) as intruder:
        intruder.execute("BEGIN IMMEDIATE")
        service.client().post(Submit("demo", "hello", "key"))
        (late,) = until(lambda: service.status()["late"])
        intruder.execute("ROLLBACK")
    assert (late["what"], late["detail"]) == ("journal", "a commit has not come back")
    assert late["seconds"] >= 1
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    until(lambda: service.status()["late"] == [])


def test_what_a_worker_costs_is_read_from_its_whole_tree(service: Service) -> None:
    service.say("demo", shell("sleep 300 & sleep 300 & sleep 300 & wait"))
    pid = worker_of(service, "demo")
    until(lambda: (_rows(service)[pid]["processes"] or 0) >= 5)
    row = _rows(service)[pid]
    assert row["memory_bytes"] > 0
    assert row["cpu_percent"] >= 0
    idle = next(row for row in service.show("workers") if row["state"] == "idle")
    assert idle["processes"] == 1
