"""Places: where an instance keeps its things, and that nobody else can reach them."""

import asyncio
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from ipc import places as places_module
from ipc.errors import PlaceError
from ipc.places import Places, credentials, find_places, is_listening, make_private, remove_stand_in
from ipc.server import Server

# Folders need not exist to be named; a short one, because long ones get a stand-in for their sockets.
SHORT = Path("/srv/hermes")
ABROAD = ("HERMES_SUPERVISOR_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def _no_places_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ABROAD:
        monkeypatch.delenv(name, raising=False)


def _sockets(places: Places) -> list[str]:
    return [places.control, places.gateway, places.services]


def test_home_holds_everything() -> None:
    places = find_places(str(SHORT))
    assert places == Places(SHORT, SHORT, SHORT / "run")
    assert places.settings_file == SHORT / "hermes.toml"
    assert places.journal == SHORT / "journal.db"
    assert places.control == str(SHORT / "run" / "control.sock")


def test_home_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_SUPERVISOR_HOME", str(SHORT / "a"))
    assert find_places(None).state == SHORT / "a"
    assert find_places(str(SHORT / "b")).state == SHORT / "b"


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_places("here").state == tmp_path / "here"


def test_hermes_home_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(SHORT))
    assert not find_places(None).state.is_relative_to(SHORT)


def test_xdg_folders_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ABROAD[1:]:
        monkeypatch.setenv(name, str(SHORT / name[4:7].lower()))
    assert find_places(None) == Places(
        config=SHORT / "con" / "hermes-supervisor",
        state=SHORT / "sta" / "hermes-supervisor",
        runtime=SHORT / "run" / "hermes-supervisor",
    )


def test_without_xdg_the_usual_folders_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(SHORT))
    state = SHORT / ".local" / "state" / "hermes-supervisor"
    assert find_places(None) == Places(SHORT / ".config" / "hermes-supervisor", state, state / "run")


def test_a_long_path_gets_a_short_private_runtime_folder(tmp_path: Path) -> None:
    long = find_places(str(tmp_path / ("x" * 90)))
    other = find_places(str(tmp_path / ("y" * 90)))
    assert long.state == tmp_path / ("x" * 90)
    assert not long.runtime.is_relative_to(long.state)
    assert str(os.geteuid()) in long.runtime.name
    assert long.runtime == find_places(str(tmp_path / ("x" * 90))).runtime != other.runtime
    assert all(len(os.fsencode(path)) < 108 for path in _sockets(long))


def test_the_longest_runtime_folder_can_be_bound(tmp_path: Path) -> None:
    """The length is counted in bytes, so that a name with accents is not too long by surprise."""
    runtime = tmp_path
    while len(os.fsencode(runtime)) < 60:
        runtime = runtime / "é"
    places = find_places(str(runtime))
    make_private(places.runtime)

    async def bind() -> None:
        for path in _sockets(places):
            server = Server(path, lambda parts: None)
            assert is_listening(path)
            server.close()

    asyncio.run(bind())


def test_private_folders_are_made_0700(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_an_open_folder_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    foreign = Path("/")
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir(mode=0o755)
        os.chown(foreign, 12345, 12345)
    mode = foreign.stat().st_mode
    with pytest.raises(PlaceError, match="belongs to another user") as caught:
        make_private(foreign)
    assert "--home" in caught.value.hint
    assert foreign.stat().st_mode == mode


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceError, match=r"cannot use .*file: File exists"):
        make_private(tmp_path / "file")
    with pytest.raises(PlaceError, match=r"cannot use .*Not a directory"):
        make_private(tmp_path / "file" / "below")


def test_a_socket_file_without_a_process_is_not_listening(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    assert not is_listening(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        assert is_listening(path)
    assert not is_listening(path)
    assert not is_listening(str(tmp_path / ("x" * 200)))


def test_a_substitute_folder_among_temporary_files_is_removed_and_no_other(tmp_path: Path) -> None:
    long = find_places(str(tmp_path / ("x" * 120)))
    make_private(long.runtime)
    (long.runtime / "folder").mkdir()
    (long.runtime / "folder" / "file").touch()
    remove_stand_in(long.runtime)
    assert not long.runtime.exists()
    remove_stand_in(long.runtime)
    own = tmp_path / "run"
    make_private(own)
    remove_stand_in(own)
    assert own.exists()


def test_credentials_of_systemd_are_a_folder_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    assert credentials() == ()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x")
    assert credentials() == (Path("/run/credentials/x"),)


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    with pytest.raises(PlaceError):
        find_places(odd)
    monkeypatch.delenv("HERMES_SUPERVISOR_HOME", raising=False)
    monkeypatch.setattr("ipc.places.SYSTEM_UNIT", tmp_path / "no unit")
    monkeypatch.setenv("XDG_STATE_HOME", odd)
    with pytest.raises(PlaceError):
        find_places(None)


def test_a_folder_of_others_among_temporary_files_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("somebody", f"hermes-supervisor-{os.geteuid()}-abc"):
        (tmp_path / name).mkdir()
        remove_stand_in(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["somebody"]


def test_a_relative_folder_in_the_environment_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would mean another folder to each process."""
    for name in ABROAD:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(places_module, "SYSTEM_UNIT", tmp_path / "absent")
    usual = find_places(None)
    for name in ABROAD[1:]:
        monkeypatch.setenv(name, "somewhere")
    assert find_places(None) == usual


def test_a_tilde_in_home_is_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_places("~/trial").state == tmp_path / "trial"


@pytest.mark.parametrize("owner", [0, 1234])
def test_the_user_of_the_system_service_and_root_find_it_and_others_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int
) -> None:
    unit = tmp_path / "unit"
    monkeypatch.setattr(places_module, "SYSTEM_UNIT", unit)
    monkeypatch.setattr(places_module, "_owner", lambda folder: 1234)

    def found(user: int) -> Places:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        return find_places(None)

    assert found(owner) != places_module.SYSTEM
    unit.touch()
    assert found(owner) == places_module.SYSTEM
    assert found(4321) != places_module.SYSTEM
