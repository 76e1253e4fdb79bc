"""Whom agents run as: no agent of root is root, and the numbers are those that nothing else has."""

import os
from pathlib import Path

import pytest

from ipc.service_messages import User
from supervisor.processes import procfs
from supervisor.processes.agent_user import (
    AgentUser,
    choose,
    mapped_ranges,
    ranges,
    subordinate_ranges,
)
from tests.processes.stage import KINDS, Stage, play, script

_HOST = mapped_ranges("         0          0 4294967295\n")
_UNCLAIMED = range(0x7F000000, 0x7F010000)


def read(pid: int, name: str) -> str:
    return Path("/proc", str(pid), name).read_text()


_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give agents another user")


def test_the_first_choice_is_roots_subordinate_range_then_one_that_nobody_hands_out() -> None:
    table = "you:100000:65536\nroot:1000000:1000\n# none\nroot:many:5\n"
    assert next(ranges(_HOST, subordinate_ranges(table))) == range(1000000, 1001000)
    assert next(ranges(_HOST, [])) == _UNCLAIMED


@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        ("0 1000 1\n1 100000 65536\n", range(60000, 65534)),
        ("0 100000 5000\n", range(4000, 5000)),
        ("0 1000 1\n65534 65534 1\n", range(65534, 65535)),
        ("0 1000 1\n", None),
    ],
)
def test_a_container_offers_what_its_map_holds(table: str, chosen: range | None) -> None:
    mapped = mapped_ranges(table)
    # Root's subordinate ranges are those of the host: none of them is mapped here.
    assert next(ranges(mapped, [range(1000000, 1001000)]), None) == chosen


def test_an_ordinary_users_agents_run_as_that_user_and_it_is_said() -> None:
    assert AgentUser().sentence == f"run as uid {os.geteuid()}, the supervisor's own"
    assert AgentUser(User(7, 8)).sentence == "run as uid 7, which is not the supervisor's"


@_as_root
def test_an_instance_keeps_its_uid_and_shares_it_with_no_other(tmp_path: Path) -> None:
    one, two = choose(tmp_path / "one", "auto").other, choose(tmp_path / "two", "auto").other
    choose.cache_clear()
    assert choose(tmp_path / "one", "auto").other == one
    assert one is not None
    assert one != two
    assert one.uid > 0 < one.gid


@_as_root
def test_what_is_given_is_given_whole_and_no_link_is_followed(tmp_path: Path) -> None:
    user = AgentUser(User(54321, 54322))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("root's")
    workspace = tmp_path / "workspace"
    (workspace / "deep" / "er").mkdir(parents=True)
    (workspace / "deep" / "file").write_text("")
    (workspace / "file link").symlink_to(tmp_path / "outside" / "file")
    (workspace / "folder link").symlink_to(tmp_path / "outside")
    (workspace / "nowhere").symlink_to("/nonexistent")
    user.give(workspace)
    inside = [workspace, *workspace.rglob("*")]
    assert len(inside) == 7
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in inside} == {(54321, 54322)}
    outside = [tmp_path / "outside", tmp_path / "outside" / "file"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in outside} == {(0, 0)}


@_as_root
@pytest.mark.parametrize("kind", KINDS)
def test_no_process_of_a_cell_is_root_outside_of_it(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            chosen = choose(stage.places.state, kind)
            if chosen.other is None:
                pytest.skip(chosen.caveat)
            uid, gid = chosen.other.uid, chosen.other.gid
            started = await stage.start(script("subprocess.Popen(['sleep', '1000'])"))
            top = procfs.status(started.pid)
            assert top is not None
            pids = [started.pid, *procfs.children(top.process)]
            assert len(pids) == 2
            for pid in pids:
                found = dict(line.split(":\t") for line in read(pid, "status").splitlines())
                assert found["Uid"].split() == [str(uid)] * 4
                assert found["Gid"].split() == [str(gid)] * 4
                assert found["Groups"].split() == []
            if kind == "pidns":
                assert read(started.pid, "uid_map").split() == [str(uid), str(uid), "1"]
            assert f"agents run as uid {uid}, which" in stage.processes.cell_description
            assert (await stage.kill(started.incarnation)).proof.all_dead

    play(act())


def test_no_range_contains_root_whatever_root_has_been_given() -> None:
    assert not any(0 in found for found in ranges(_HOST, [range(65536)]))
