"""What a process may use and what its host has left, read from files as the kernel writes them."""

import asyncio
import io
import os
from pathlib import Path

import pytest

from ipc.cpus import available_cpus
from supervisor.containment import Containment
from supervisor.core.events import HostRead
from supervisor.telemetry import host_resources
from supervisor.telemetry.host_resources import read_host
from supervisor.telemetry.log import Log
from tests.supervisor.fixed_clock import FixedClock
from tests.waiting import soon

_MIB = 1024 * 1024
_PRESSURE = (
    "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.25 avg60=0.00 avg300=0.00 total=1\n"
)


class Host:
    """A folder that looks like /proc and /sys/fs/cgroup of a process in `a/b`."""

    def __init__(self, folder: Path, membership: str = "0::/a/b\n") -> None:
        self.proc, self.groups, self.membership = folder / "proc", folder / "cgroup", folder / "membership"
        self.membership.write_text(membership)
        (self.proc / "pressure").mkdir(parents=True)
        (self.groups / "a" / "b").mkdir(parents=True)

    def write(self, group: str, file: str, text: str) -> None:
        (self.groups / group).mkdir(parents=True, exist_ok=True)
        (self.groups / group / file).write_text(text)

    def cpus(self) -> float:
        return available_cpus(self.groups, self.membership)

    def free_bytes(self) -> int | None:
        return read_host(self.proc, self.groups, self.membership).memory_free_bytes


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_without_a_quota_the_affinity_counts(host: Host) -> None:
    host.write("a/b", "cpu.max", "max 100000\n")
    assert host.cpus() == len(os.sched_getaffinity(0))
    assert available_cpus(host.groups / "nowhere", host.membership / "nothing") == host.cpus()


def test_the_tightest_quota_on_the_way_to_the_root_counts(host: Host) -> None:
    host.write("a/b", "cpu.max", "90000 100000\n")
    host.write("a", "cpu.max", "50000 100000\n")
    host.write("", "cpu.max", "70000 100000\n")
    assert host.cpus() == 0.5


def test_a_quota_beside_the_way_does_not_count(host: Host) -> None:
    host.write("c", "cpu.max", "1000 100000\n")
    assert host.cpus() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("quota", "cpus"), [("50000\n", 0.5), ("-1\n", None), ("nonsense\n", None)])
def test_a_quota_of_the_first_version_counts_too(tmp_path: Path, quota: str, cpus: float | None) -> None:
    host = Host(tmp_path, "4:memory:/x\n3:cpu,cpuacct:/a/b\n0::/\n")
    host.write("cpu,cpuacct/a", "cpu.cfs_quota_us", quota)
    host.write("cpu,cpuacct/a", "cpu.cfs_period_us", "100000\n")
    assert host.cpus() == (cpus or len(os.sched_getaffinity(0)))


def test_free_memory_is_what_the_host_can_give(host: Host) -> None:
    (host.proc / "meminfo").write_text("MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n")
    assert host.free_bytes() == 4 * _MIB


def test_a_line_without_its_number_sets_no_limit(host: Host) -> None:
    (host.proc / "meminfo").write_text("MemAvailable:\n")
    host.write("a", "memory.stat", "inactive_file \n")
    assert host.free_bytes() is None
    host.write("a", "memory.max", f"{100 * _MIB}\n")
    host.write("a", "memory.current", f"{90 * _MIB}\n")
    assert host.free_bytes() == 10 * _MIB


def test_a_group_may_end_sooner_and_its_cache_is_room(host: Host) -> None:
    (host.proc / "meminfo").write_text("MemAvailable: 999999 kB\n")
    host.write("a", "memory.max", f"{100 * _MIB}\n")
    host.write("a", "memory.current", f"{90 * _MIB}\n")
    assert host.free_bytes() == 10 * _MIB
    host.write("a", "memory.stat", f"anon 1\ninactive_file {30 * _MIB}\n")
    assert host.free_bytes() == 40 * _MIB
    # A group over its limit has no room, and not less than none.
    host.write("a", "memory.current", f"{150 * _MIB}\n")
    assert host.free_bytes() == 0
    host.write("a", "memory.max", "max\n")
    assert host.free_bytes() == 999999 * 1024


def test_pressure_is_read_where_the_kernel_tells_it(host: Host) -> None:
    for name in ("memory", "cpu"):
        (host.proc / "pressure" / name).write_text(_PRESSURE)
    read = read_host(host.proc, host.groups, host.membership)
    assert (read.memory_pressure, read.io_pressure, read.cpu_pressure) == (3.25, None, 12.5)
    assert read.memory_free_bytes is None


def test_the_host_is_read_again_after_a_reading_that_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_resources, "_SECONDS", 0.001)
    contained: list[str] = []
    readings: list[HostRead] = []

    def report(reading: HostRead) -> None:
        readings.append(reading)
        if len(readings) == 1:
            raise ValueError("not foreseen")

    async def act() -> None:
        log = Log(FixedClock(), io.StringIO())
        gauges = host_resources.Gauges(report, Containment(log, lambda: 0.0, contained.append))
        gauges.open()
        await soon(lambda: len(readings) > 1)
        gauges.close()
        assert contained == ["schedule"]

    asyncio.run(act())
