"""The address of a database: which files of it and of its driver no cell may see, and the default role."""

import os
import pwd
from pathlib import Path

import pytest

from supervisor.config.database_address import address_of, driver_secrets
from supervisor.config.endpoints import hidden_paths, key_files
from tests.test_agent_settings import load_text


def test_files_in_which_the_driver_looks_for_secrets_are_hidden_if_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passwords"))
    monkeypatch.setenv("PGSSLKEY", "")
    assert driver_secrets() == ()
    (tmp_path / ".postgresql").mkdir()
    secrets = (tmp_path / ".pgpass", tmp_path / ".postgresql/postgresql.key", tmp_path / "passwords")
    for path in secrets:
        path.touch()
    assert driver_secrets() == secrets
    monkeypatch.setenv("PGSSLKEY", str(tmp_path / ".pgpass"))
    monkeypatch.delenv("PGPASSFILE")
    assert driver_secrets() == (*secrets[:2], secrets[0])


def test_secrets_and_sockets_of_a_database_are_hidden_if_the_journal_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGPASSFILE", raising=False)
    monkeypatch.delenv("PGSSLKEY", raising=False)
    (tmp_path / ".pgpass").touch()
    without = load_text(tmp_path, "")
    assert hidden_paths(without) == key_files(without) == ()
    there = load_text(
        tmp_path, "[journal]\nurl = 'postgresql:///j?host=/srv/pg'\npassword_file = 'password'\n"
    )
    assert key_files(there) == (tmp_path / "password", tmp_path / ".pgpass")
    assert hidden_paths(there) == (*key_files(there), Path("/srv/pg"))


@pytest.mark.parametrize("folder", ["/tmp", "/run", "/var/run", "/var/tmp"])
def test_a_socket_in_a_folder_of_many_programs_is_hidden_alone(folder: str) -> None:
    found = address_of(f"postgresql:///j?host={folder}&port=7")
    assert found.hidden == (Path(folder) / ".s.PGSQL.7",)


def test_the_role_and_the_database_are_named_after_the_user_unless_the_address_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    found = address_of("postgresql://db.example")
    assert (found.role, found.database) == (own, own)
    found = address_of("postgresql://other@db.example")
    assert (found.role, found.database) == ("other", "other")
    found = address_of("postgresql://a%40b@db.example/j%20k")
    assert (found.role, found.database) == ("a@b", "j k")

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert address_of("postgresql://db.example").role == str(os.geteuid())


@pytest.mark.parametrize(
    ("hosts", "ports"),
    [
        ("a,b", (("a", 5432), ("b", 5432))),
        ("a:7,b:8", (("a", 7), ("b", 8))),
        ("[::1]:7", (("::1", 7),)),
        ("/j?host=a,b&port=7", (("a", 7), ("b", 7))),
        ("/j?host=a,b&port=7,8", (("a", 7), ("b", 8))),
    ],
)
def test_every_host_of_an_address_has_its_port(hosts: str, ports: tuple[tuple[str, int], ...]) -> None:
    assert address_of(f"postgresql://{hosts}").ports == ports
