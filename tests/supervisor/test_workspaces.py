"""Workspaces: a folder of its own for every session name there can be, private, and never through a link."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.errors import PlaceError
from supervisor.processes.agent_user import AgentUser
from supervisor.workers.workspace_quota import size_of
from supervisor.workers.workspaces import Workspaces, folder_name, session_of_folder, sessions_of

_HOSTILE = [
    "..",
    ".",
    "../other",
    "/etc",
    "a/b",
    "",
    ".hidden",
    "~",
    "a~b",
    "%2E",
    "x\ny",
    "\u202e",
    "é",
    "日本",
]


@pytest.mark.parametrize("name", ["demo", "telegram:42", "me@home", "a.b-c_d"])
def test_an_ordinary_name_is_its_own_folder_name(name: str) -> None:
    assert folder_name(name) == name


@pytest.mark.parametrize("name", [*_HOSTILE, "a" * 10_000, "/" * 10_000, "日" * 10_000])
def test_a_folder_lies_in_the_workspaces_whatever_the_session_is_called(name: str) -> None:
    folder = folder_name(name)
    assert folder
    assert "/" not in folder
    assert folder not in (".", "..")
    assert not folder.startswith(".")
    assert folder.isascii()
    assert len(folder) <= 255


@given(st.text(max_size=300))
def test_a_folder_name_is_read_back_unless_it_was_cut(name: str) -> None:
    folder = folder_name(name)
    assert session_of_folder(folder) == (None if "~" in folder else name)


@pytest.mark.parametrize("name", [".gone-1234", "%zz", "%e9", "a b", "é", "a%2Db"])
def test_a_name_that_is_no_workspaces_belongs_to_nobody(name: str) -> None:
    assert session_of_folder(name) is None


@given(st.sets(st.text(max_size=300), min_size=2, max_size=20))
def test_no_two_sessions_share_a_folder(names: set[str]) -> None:
    assert len({folder_name(name) for name in names}) == len(names)


def test_names_that_differ_beyond_the_limit_differ(tmp_path: Path) -> None:
    assert folder_name("a" * 300 + "b") != folder_name("a" * 300 + "c")
    # What a long name is cut to is no other session's folder.
    assert folder_name(folder_name("a" * 300)) != folder_name("a" * 300)


def test_a_workspace_is_made_once_and_private(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, check=lambda path: None)
    before = os.umask(0)
    try:
        made = workspaces.make("a/b")
    finally:
        os.umask(before)
    assert made.parent == tmp_path
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (made / "note").write_text("kept")
    assert workspaces.make("a/b") == made
    assert (made / "note").read_text() == "kept"


def test_folders_of_an_earlier_user_are_given_to_the_agents_and_no_link_is(tmp_path: Path) -> None:
    given: list[str] = []

    class Recipient(AgentUser):
        def give(self, folder: Path) -> None:
            given.append(folder.name)

    (tmp_path / "demo").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "demo")
    (tmp_path / "file").touch()
    Workspaces(tmp_path, check=lambda path: None, user=Recipient()).take_over()
    assert given == ["demo"]


def test_a_folder_that_cannot_be_given_keeps_no_other_from_the_agents(tmp_path: Path) -> None:
    """The service starts, and the session that needs it is told."""
    given: list[str] = []

    class Recipient(AgentUser):
        def give(self, folder: Path) -> None:
            given.append(folder.name)
            raise PermissionError

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    Workspaces(tmp_path, check=lambda path: None, user=Recipient()).take_over()
    assert sorted(given) == ["one", "two"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_refused_and_not_followed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    workspaces = Workspaces(tmp_path / "workspaces", check=lambda path: None)
    (tmp_path / "workspaces").mkdir()
    if kind == "link":
        workspaces.path("demo").symlink_to(tmp_path / "elsewhere")
    else:
        workspaces.path("demo").write_text("")
    with pytest.raises(PlaceError, match="cannot be used") as refused:
        workspaces.make("demo")
    assert "Not a directory" in refused.value.fault or "Too many levels" in refused.value.fault


def test_a_size_counts_each_file_once_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(b"x" * 1_000_000)
    once = size_of(tmp_path)
    os.link(tmp_path / "sub" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert 1_000_000 <= once <= size_of(tmp_path) < 1_100_000
    assert size_of(tmp_path / "absent") == 0


def test_folders_nested_without_end_are_too_large(tmp_path: Path) -> None:
    """Deeper than any project, and not so deep that the test could not be cleared away."""
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(250):
        os.mkdir("d" * 10, dir_fd=place)
        inner = os.open("d" * 10, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    assert size_of(tmp_path) >= 2**63


class _Names:
    def __init__(self, *names: str) -> None:
        self._names = names

    def long_names(self, characters_min: int) -> list[str]:
        return [name for name in self._names if len(name) >= characters_min]


def test_a_folder_is_known_by_its_session_also_when_its_name_was_cut() -> None:
    long, longest = "日" * 30, "a" * 300
    names = [folder_name(name) for name in ("demo", long, longest, "b" * 300)]
    found = sessions_of([*names, ".gone-1234"], _Names("demo", long, longest))
    assert found == dict(zip(names[:3], ("demo", long, longest), strict=True))


def test_a_measurement_leaves_no_descriptor_open(tmp_path: Path) -> None:
    for path in ("one/two/three", "four"):
        (tmp_path / path).mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    size_of(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_workspace_that_is_there_is_given_to_the_agents_and_leaves_no_descriptor(tmp_path: Path) -> None:
    given: list[str] = []

    class Recipient(AgentUser):
        def give(self, folder: Path) -> None:
            given.append(folder.name)

    workspaces = Workspaces(tmp_path, check=lambda path: None, user=Recipient())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        workspaces.make("demo")
    assert given == ["demo"] * 3
    assert len(os.listdir("/proc/self/fd")) == before
