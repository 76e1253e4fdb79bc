"""The handover from one image of the supervisor to the next, without the `execve` between them."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from ipc.channel import HandedChannel
from ipc.codec import VERSION
from ipc.service_messages import Sandbox
from supervisor.core.state import Kept, Who
from supervisor.handoff import handover
from supervisor.handoff.carried_services import HandedService
from supervisor.handoff.carried_workers import HandedProcesses, HandedWorker, HandedZygote
from supervisor.handoff.handover import Handover, arrive, fault_of_next_image, leave
from supervisor.workers.link import HandedLine

LOCK = 17


class Replaced(Exception):
    """The image would have been replaced by this command."""


def worker(incarnation: int) -> HandedWorker:
    return HandedWorker(
        seat=incarnation - 10,
        incarnation=incarnation,
        log="worker.log",
        begun_at=1.0,
        pid=100 + incarnation,
        keeper=200 + incarnation,
        keeper_started=300,
        keeper_pidfd=400,
        guard=500,
        memory_bytes_max=600,
        sandbox=Sandbox(),
    )


def handed(protocol: int = VERSION, lines: tuple[int, ...] = (11, 12)) -> Handover:
    """Workers 11 and 12 in the middle of a turn, and the links of these incarnations."""
    channel = HandedChannel(9, b"half a frame", b"")
    model = HandedService("model", {"api_key": "a key"}, 2, "identity", 900, 0, 1.0, "ready", "http://model")
    return Handover(
        protocol=protocol,
        epoch=3,
        incarnations=12,
        kept=(Kept(1, 11, 111, "a/1"), Kept(2, 12, 112, "b/1")),
        processes=HandedProcesses((HandedZygote("pidns", 500, 8),), (worker(11), worker(12))),
        model=model,
        services=(
            HandedService("gateway", {"listen": "x"}, 1, "other", 901, 0, 1.0, "ready", "http://door"),
        ),
        environment={"REMOVED_BEFORE": "and given back"},
        lines={incarnation: HandedLine(5, 1, channel, channel) for incarnation in lines},
    )


def arrived(given: Handover, monkeypatch: pytest.MonkeyPatch) -> tuple[Handover, int]:
    """What the next image finds, through the file and the arguments that it gets."""
    commands: list[tuple[list[str], dict[str, str]]] = []

    def execve(path: str, line: list[str], environment: dict[str, str]) -> None:
        assert path == line[0]
        commands.append((line, environment))
        raise Replaced

    monkeypatch.setattr(os, "execve", execve)
    with pytest.raises(Replaced):
        leave(given, ["--home", "here"], LOCK)
    [(line, environment)] = commands
    assert line[-4:-1] == ["--home", "here", "--handover"]
    assert environment["REMOVED_BEFORE"] == "and given back"
    descriptor = int(line[-1].split(",")[0])
    assert os.get_inheritable(descriptor)
    return arrive(line[-1])


def test_the_next_image_finds_what_the_last_one_left_and_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lock = arrived(handed(), monkeypatch)
    assert (found, lock) == (handed(), LOCK)
    assert [who for who, _ in found.workers] == [Who(3, 1, 11), Who(3, 2, 12)]
    assert [line for _, line in found.workers] == [handed().lines[11], handed().lines[12]]
    assert found.model_key == "a key"
    assert "a key" not in repr(found)
    assert repr(found.model) == "HandedService(name='model', pid=900)"
    assert [each.name for each in found.all_services] == ["model", "gateway"]


def test_the_alarm_of_a_bounded_handover_does_not_end_the_next_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm survives `execve`."""
    signal.setitimer(signal.ITIMER_REAL, 600.0)
    try:
        arrived(handed(), monkeypatch)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def test_a_worker_whose_link_was_closed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = arrived(handed(lines=(12,)), monkeypatch)
    assert [one.incarnation for one in found.kept] == [12]
    assert [one.incarnation for one in found.processes.workers] == [12]
    assert found.processes.zygotes == handed().processes.zygotes, "it still has to be ended"


def test_workers_of_another_protocol_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = arrived(handed(protocol=VERSION + 1), monkeypatch)
    assert (found.kept, found.workers) == ((), ())
    assert found.model == handed().model
    assert [(each.name, each.options) for each in found.services] == [("gateway", {})], "it is replaced"


def test_a_next_image_that_does_not_come_up_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for settings that nothing writes."""
    os.mkfifo(tmp_path / "hermes.toml")
    monkeypatch.setenv("HERMES_SUPERVISOR_HOME", str(tmp_path))
    monkeypatch.setattr(handover, "_CHECK_SECONDS_MAX", 0.5)

    async def act() -> None:
        before = {child.pid for child in psutil.Process().children()}
        assert await fault_of_next_image([]) == "it did not come up within 0 s"
        assert {child.pid for child in psutil.Process().children()} <= before

    asyncio.run(act())


def test_the_fault_of_the_next_image_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_SUPERVISOR_HOME", str(tmp_path))
    assert asyncio.run(fault_of_next_image([])) == ""
    (tmp_path / "hermes.toml").write_text("[workers]\ncount = 'many'\n")
    assert "count" in asyncio.run(fault_of_next_image([]))
