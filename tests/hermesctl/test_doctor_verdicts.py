"""Checks of doctor by themselves: from which number on a verdict changes, and what no host here has."""

import resource
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermesctl.commands.version import installed_version
from hermesctl.doctor import (
    all_checks,
    cell_look,
    host_checks,
    limit_checks,
    service_checks,
    settings_checks,
    software_checks,
    storage_checks,
)
from hermesctl.doctor.finding import Surroundings
from ipc.messages import Refused
from ipc.places import find_places
from tests.hermesctl.peer import opened, tables
from tests.hermesctl.test_doctor import ENDPOINT, around
from tests.raw_server import raw_server

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(100 * MEBIBYTE - 1, "bad"), (100 * MEBIBYTE, "care"), (1024 * MEBIBYTE - 1, "care"), (2**30, "good")],
)
def test_a_disk_is_judged_by_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, verdict: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert storage_checks.room(around(tmp_path)).verdict == verdict


def test_a_reserve_that_is_used_up_is_wrong_while_the_service_runs(tmp_path: Path) -> None:
    assert storage_checks.reserve(around(tmp_path)).verdict == "good"
    assert storage_checks.reserve(around(tmp_path, {"reserve": True})).verdict == "good"
    assert storage_checks.reserve(around(tmp_path, {"reserve": False})).verdict == "bad"


def test_the_file_system_of_a_folder_is_found_and_one_in_memory_deserves_a_look() -> None:
    assert [storage_checks._file_system(Path(each)) for each in ("/proc", "/sys")] == ["proc", "sysfs"]
    finding = storage_checks.file_system(Surroundings(find_places("/dev/shm/not-there")))
    is_fleeting = storage_checks._file_system(Path("/dev/shm")) == "tmpfs"
    assert finding.verdict == ("care" if is_fleeting else "good")


def test_a_disk_on_which_everything_waits_long_deserves_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_checks, "_SYNC_MS_MAX", -1.0)
    assert storage_checks.sync_speed(around(tmp_path)).verdict == "care"


def test_limits_are_compared_with_what_the_seats_may_need(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (1000, hard))
    try:
        many = limit_checks.processes(around(tmp_path, seats=200))
        few = limit_checks.processes(around(tmp_path, seats=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    assert (many.verdict, few.verdict) == ("bad", "good")
    files = limit_checks.open_files(around(tmp_path, seats=1, files_max=2**40))
    assert (files.verdict, str(2**40) in files.fact) == ("care", True)


def test_a_socket_path_has_a_length_that_the_kernel_can_take(tmp_path: Path) -> None:
    def judged(control: str) -> str:
        places: Any = SimpleNamespace(control=control, services="/x", runtime="/")
        return limit_checks.socket_paths(Surroundings(places)).verdict

    assert judged("/" + "x" * 106) == "good"
    assert judged("/" + "x" * 107) == "bad"
    # Counted in bytes, not in characters.
    assert judged("/" + "é" * 54) == "bad"


def test_a_service_of_another_version_than_is_installed_is_named(tmp_path: Path) -> None:
    assert service_checks.version(around(tmp_path)) is None
    assert service_checks.version(around(tmp_path, {"version": installed_version()})) is None
    older = service_checks.version(around(tmp_path, {"version": "0.0.1"}))
    assert older is not None
    assert older.fact.startswith("0.0.1 runs")


def test_a_host_that_is_overdue_or_of_another_version_deserves_a_look(tmp_path: Path) -> None:
    def judged(*rows: dict[str, Any]) -> tuple[str, str]:
        with opened(tmp_path, tables(hosts=list(rows))):
            finding = service_checks.hosts(around(tmp_path, {"pid": 1}, journal_url="postgresql://x/y"))
        assert finding is not None
        return finding.verdict, finding.hint

    here = {"name": "alpha", "state": "open", "version": "2"}
    assert judged(here, {"name": "beta", "state": "open", "version": "2"})[0] == "good"
    overdue = judged(here, {"name": "beta", "state": "overdue", "version": "2"})
    assert (overdue[0], "does not renew its lease" in overdue[1]) == ("care", True)
    assert judged(here, {"name": "beta", "state": "open", "version": "1"}) == (
        "care",
        "upgrade the others too",
    )


def test_a_service_that_refuses_to_say_how_it_is_is_stuck(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: [Refused("the journal is away", "wait")]) as peer:
        assert all_checks._status(peer.places) == {"state": "stuck", "hints": ["the journal is away"]}
    assert all_checks._status(find_places(str(tmp_path))) is None


def test_an_endpoint_that_is_no_http_server_is_wrong_and_an_empty_list_is_not(tmp_path: Path) -> None:
    def judged(answer: bytes) -> str:
        with raw_server(lambda: iter([answer])) as server:
            return settings_checks.model(
                around(tmp_path, model=ENDPOINT | {"base_url": server.base_url})
            ).verdict

    assert judged(b"SSH-2.0-OpenSSH_9.2\r\n\r\n") == "bad"
    body = b'{"data": []}'
    assert judged(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) == "good"


def test_packages_are_compared_by_numbers() -> None:
    assert software_checks._numbers("1.10.0+local") > software_checks._numbers("1.9")
    assert software_checks._fault("pytest >= 1.0") == ""
    assert software_checks._fault("pytest>=999").endswith(", 999 is needed")
    assert software_checks._fault("no-such-package>=1") == "no-such-package is missing"


def test_a_command_that_hangs_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_checks, "_COMMAND_SECONDS", 0.01)
    assert host_checks._said("sleep", "60") == ""


def test_memory_is_held_where_the_kernel_has_a_number(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    assert cell_look.memory(tmp_path).verdict == "open"
    (tmp_path / "memory.max").write_text("1000\n")
    assert cell_look.memory(tmp_path).verdict == "held"
    assert cell_look.memory(None).verdict == cell_look.memory(tmp_path / "gone").verdict == "open"
