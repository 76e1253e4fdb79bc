"""A process that no kill ends: its session waits for it, visibly, and nobody else does."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Done, HandOver
from tests.acceptance.sight import alive, check_one_owner, named, shell, sleeper, state_of, worker_of
from tests.acceptance.stuck_disk import StuckDisk
from tests.fake_model import FakeModel
from tests.processes.test_weaker import kill_all_above
from tests.service import Service
from tests.waiting import until


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StuckDisk]:
    (tmp_path / "shown").mkdir()
    disk = StuckDisk(tmp_path / "shown" / "disk")
    yield disk
    disk.let_go()


@pytest.fixture
def disk_for_all() -> Iterator[tuple[StuckDisk, Path]]:
    """In a folder that every user may enter: a cell without a view of its own shows what its user sees."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-test-disk-"))
    folder.chmod(0o755)
    disk = StuckDisk(folder / "disk")
    yield disk, folder / "disk"
    disk.let_go()
    shutil.rmtree(folder)


def reader_of(service: Service, folder: Path) -> int:
    """The pid of the command that reads there."""

    def found() -> int:
        for each in Path("/proc").glob("[0-9]*"):
            try:
                if (each / "cmdline").read_bytes().split(b"\0")[:2] == [b"cat", str(folder).encode()]:
                    return int(each.name)
            except OSError:
                continue
        return 0

    return until(found)


@pytest.mark.timeout(120)
def test_h18_a_process_that_cannot_be_ended_holds_its_session_and_nobody_else(
    make_service: Callable[..., Service], model: FakeModel, disk: StuckDisk, tmp_path: Path
) -> None:
    """The disk lies below the folder that is shown: whoever only looks at that one does not wait for it."""
    file = tmp_path / "shown" / "disk" / "file"
    service = make_service(workers="count = 1\nspares = 0", sandbox=f'read = ["{tmp_path}/shown"]')
    service.say("held", shell(f"cat {file}"))
    listener = service.listen("held")
    assert disk.was_asked.wait(30)
    worker, reader = worker_of(service, "held"), reader_of(service, file)

    told = service.hermesctl("interrupt", "held")
    assert told.returncode == 5
    assert "1 process is still there" in told.stderr
    assert "cat" in told.stderr
    assert state_of(reader) == "D"

    # It can be seen from everywhere, with what it is and since when.
    (row,) = [row for row in service.show("workers") if row["session"] == "held"]
    assert (row["state"], row["pid"]) == ("dying", worker)
    assert "not proved gone after" in row["words"]
    assert f"cat (pid {reader}) waits in the kernel" in row["words"]
    (late,) = [each for each in service.status()["late"] if "session held is held" in each["detail"]]
    assert late["seconds"] >= 0
    assert "session held is held" in service.hermesctl("status").stdout
    assert "1 process is still there" in service.hermesctl("why", "held/1").stdout

    # Others go on, though there is one seat only; what is said to this session waits.
    service.say("other", "hello")
    assert service.listen("other").ending("other/1").type == "turn.done"
    service.say("held", "and now?")
    (waiting,) = json.loads(service.hermesctl("queue", "held", "--json").stdout)
    assert (waiting["text"], waiting["state"]) == ("and now?", "waiting")
    with pytest.raises(CommandError) as refused:
        service.client().ask(HandOver(), Done, 60)
    assert "cannot be ended" in refused.value.fault
    assert listener.of_type("turn.interrupted") == []
    assert alive([reader]) == {reader}

    disk.let_go()
    ended = listener.ending("held/1")
    assert ended.type == "turn.interrupted"
    assert ended.fields["killed"]["all_dead"] is True
    assert ended.fields["killed"]["ms"] > 4500
    assert alive([reader, worker]) == set()
    assert listener.ending("held/2").type == "turn.done"
    check_one_owner(listener.events)
    until(lambda: len(service.show("workers")) == 1)
    assert service.status()["late"] == []


def held_after_a_start(service: Service, reader: int) -> None:
    """What the service before has left is visible, another session is answered, and this one waits."""
    (late,) = [each for each in service.status()["late"] if "session held is held" in each["detail"]]
    assert f"cat (pid {reader}) waits in the kernel" in late["detail"]
    (row,) = [row for row in service.show("workers") if row["session"] == "held"]
    assert (row["state"], row["turn"]) == ("dying", None)
    service.say("other", "hello")
    assert service.listen("other").ending("other/1").type == "turn.done"
    assert alive([reader]) == {reader}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_h18_what_an_earlier_service_left_holds_its_session(
    make_service: Callable[..., Service], disk: StuckDisk, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "shown" / "disk" / "file"
    service = make_service(workers="count = 1\nspares = 0", sandbox=f'read = ["{tmp_path}/shown"]')
    service.say("held", shell(f"cat {file}"))
    assert disk.was_asked.wait(30)
    reader = reader_of(service, file)
    service.kill() if how == "killed" else service.stop()
    service.start()
    held_after_a_start(service, reader)
    # Whatever happens to this service, the next one knows it, too.
    service.kill()
    service.start()
    held_after_a_start(service, reader)

    listener = service.listen("held")
    listener.until(lambda: "attempt.lost" in listener.types())
    assert len(listener.of_type("attempt.opened")) == 1
    disk.let_go()
    assert listener.ending("held/1").type == "turn.done"
    assert alive([reader]) == set()
    check_one_owner(listener.events)
    until(lambda: len(service.show("workers")) == 1)
    assert service.status()["late"] == []


@pytest.mark.timeout(120)
def test_h18_an_interrupted_turn_that_an_earlier_service_left_ends_with_its_last_process(
    make_service: Callable[..., Service], disk: StuckDisk, tmp_path: Path
) -> None:
    file = tmp_path / "shown" / "disk" / "file"
    service = make_service(workers="count = 1\nspares = 0", sandbox=f'read = ["{tmp_path}/shown"]')
    service.say("held", shell(f"cat {file}"))
    assert disk.was_asked.wait(30)
    reader = reader_of(service, file)
    assert service.hermesctl("interrupt", "held").returncode == 5
    service.kill()
    service.start()
    held_after_a_start(service, reader)
    (turn,) = service.show("turns", session="held")
    assert turn["state"] == "running"

    listener = service.listen("held")
    listener.until(lambda: len(listener.of_type("attempt.stuck")) == 2)
    assert listener.of_type("turn.interrupted") == []
    disk.let_go()
    ended = listener.ending("held/1")
    assert ended.type == "turn.interrupted"
    assert (ended.fields["killed"]["all_dead"], ended.fields["killed"]["how"]) == (True, "restart")
    assert alive([reader]) == set()


@pytest.mark.timeout(120)
def test_h18_the_next_attempt_waits_for_what_was_left_when_all_that_hold_a_worker_were_killed(
    make_service: Callable[..., Service], disk_for_all: tuple[StuckDisk, Path]
) -> None:
    """Without a namespace nobody but the supervisor can end it then; a killed reader of the disk stays."""
    disk, file = disk_for_all[0], disk_for_all[1] / "file"
    service = make_service(workers='count = 1\nspares = 0\ncell = "sweep"')
    service.say("held", shell(f"{sleeper('left-alone')} & cat {file}"))
    listener = service.listen("held")
    assert disk.was_asked.wait(30)
    worker, reader = worker_of(service, "held"), reader_of(service, file)
    assert until(lambda: named("left-alone"))
    kill_all_above(worker)

    listener.until(lambda: "attempt.stuck" in listener.types())
    assert named("left-alone") == set()
    assert alive([worker, reader]) == {reader}
    service.say("held", "and now?", busy="queue")
    waits = "it waits for the end of worker 0, ended, and not proved gone after"
    assert waits in service.hermesctl("why", "held/1").stdout
    assert len(listener.of_type("attempt.opened")) == 1

    disk.let_go()
    assert listener.ending("held/1").type == "turn.done"
    assert alive([reader]) == set()
    assert listener.types().index("attempt.lost") > listener.types().index("attempt.stuck")
    check_one_owner(listener.events)
