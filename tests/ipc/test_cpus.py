"""Threads follow the CPUs that are really there, and leave them to others while they wait."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipc.cgroups import folders
from ipc.cpus import OPENMP_SPINS, available_cpus

ALLOWED = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("own", "above", "cpus"),
    [
        ("max 100000", "max 100000", ALLOWED),
        ("50000 100000", "max 100000", 0.5),
        ("max 100000", "100000 100000", 1),
        ("99900000 100000", "max 100000", ALLOWED),
        ("nonsense", "max 100000", ALLOWED),
    ],
)
def test_the_tightest_quota_on_the_way_to_the_root_counts(
    tmp_path: Path, own: str, above: str, cpus: float
) -> None:
    group = tmp_path / "cgroup" / "slice" / "service"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(f"{own}\n")
    (group.parent / "cpu.max").write_text(f"{above}\n")
    membership = tmp_path / "membership"
    membership.write_text("0::/slice/service\n")
    assert available_cpus(tmp_path / "cgroup", membership) == cpus


def test_a_host_without_cgroups_gives_the_affinity(tmp_path: Path) -> None:
    assert available_cpus(tmp_path / "none", tmp_path / "none") == ALLOWED


@pytest.mark.parametrize(
    ("line", "made", "found"),
    [
        ("0::/a:b/c", (), ["a:b/c", "a:b", "."]),
        ("4:cpu,cpuacct:/a", ("cpu,cpuacct",), ["cpu,cpuacct/a", "cpu,cpuacct"]),
        ("4:cpu,cpuacct:/a", ("cpu",), ["cpu/a", "cpu"]),
        ("5:cpuset:/a", ("cpuset", "cpu"), []),
        ("nonsense", (), []),
    ],
)
def test_limits_lie_between_the_own_group_and_the_root_of_its_tree(
    tmp_path: Path, line: str, made: tuple[str, ...], found: list[str]
) -> None:
    for each in made:
        (tmp_path / "root" / each).mkdir(parents=True)
    (tmp_path / "membership").write_text(f"{line}\n")
    got = folders("cpu", tmp_path / "root", tmp_path / "membership")
    assert [str(each.relative_to(tmp_path / "root")) for each in got] == found


@pytest.mark.parametrize("module", ["stt_service.whisper", "model_service.llama"])
def test_the_threads_of_a_model_sleep_soon_while_they_wait_for_each_other(module: str) -> None:
    """As libgomp says itself when it is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        env={**os.environ, "OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{OPENMP_SPINS}'" in done.stderr
