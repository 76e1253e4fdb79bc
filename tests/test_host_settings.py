"""[hosts] in hermes.toml, and the labels that sessions ask for."""

import socket
from pathlib import Path

import pytest

from supervisor.config.endpoints import cautions
from supervisor.config.fields import AFTER_RESTART, AT_ONCE
from supervisor.config.reload import changes
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError


def _load(folder: Path, text: str) -> Settings:
    path = folder / "hermes.toml"
    path.write_text(text)
    return load(path)


def test_a_host_has_the_name_of_its_machine_unless_it_is_given_one(tmp_path: Path) -> None:
    hosts = load(tmp_path / "absent").hosts
    assert (hosts.own_name, hosts.labels) == (socket.gethostname(), ())
    assert (hosts.lease_seconds, hosts.files) == (15, "local")


def test_every_key_can_be_given(tmp_path: Path) -> None:
    found = _load(
        tmp_path,
        "[hosts]\nname = 'alpha'\nlabels = ['gpu', 'big', 'gpu']\nlease = '2s'\nfiles = 'shared'\n"
        "[sessions.'gpu:*']\nlabels = ['gpu']\n",
    )
    assert (found.hosts.own_name, found.hosts.labels) == ("alpha", ("big", "gpu"))
    assert (found.hosts.lease_seconds, found.hosts.files) == (2, "shared")
    assert found.for_session("gpu:1").labels == ("gpu",)
    assert found.for_session("other").labels == ()


@pytest.mark.parametrize(
    ("text", "fault", "hint"),
    [
        ("[hosts]\nname = 'a b'\n", 'line 2: [hosts] name = "a b"', "a name of letters, digits"),
        ("[hosts]\nlease = '1s'\n", 'line 2: [hosts] lease = "1s"', "a duration of at least 2 s"),
        ("[hosts]\nlabels = 'gpu'\n", 'line 2: [hosts] labels = "gpu"', 'such as ["gpu"]'),
        ("[hosts]\nfiles = 'nfs'\n", 'line 2: [hosts] files = "nfs"', '"local", "shared"'),
        ("[sessions.'t:*']\nlabels = ['']\n", 'line 2: [sessions."t:*"] labels', "a list of labels"),
    ],
)
def test_an_error_names_line_key_value_and_remedy(tmp_path: Path, text: str, fault: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, text)
    assert fault in caught.value.fault
    assert hint in caught.value.hint


def test_the_host_itself_changes_by_a_restart_and_its_sessions_at_once(tmp_path: Path) -> None:
    old = _load(tmp_path, "[sessions.s]\nlabels = []\n")
    new = _load(tmp_path, "[hosts]\nname = 'b'\nlabels = ['x']\n[sessions.s]\nlabels = ['x']\n")
    found = {each.key: each.applies for each in changes(old, new)}
    assert found == {
        "[hosts] name": AFTER_RESTART,
        "[hosts] labels": AFTER_RESTART,
        '[sessions."s"]': AT_ONCE,
    }


def test_a_password_that_every_user_can_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret")
    (tmp_path / "hermes.toml").write_text(
        '[journal]\nurl = "postgresql://db.example/hermes"\npassword_file = "password"\n'
    )
    settings = load(tmp_path / "hermes.toml")
    (tmp_path / "password").chmod(0o600)
    assert cautions(settings) == ()
    (tmp_path / "password").chmod(0o644)
    (caution,) = cautions(settings)
    assert "chmod 600" in caution


@pytest.mark.parametrize("query", ["?password=secret", "?host=/run/pg&password="])
def test_a_password_in_the_query_of_an_address_is_refused_and_not_repeated(
    tmp_path: Path, query: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, f"[journal]\nurl = 'postgresql://db.example/hermes{query}'\n")
    assert "[journal] url contains a password" in caught.value.fault
    assert "secret" not in caught.value.fault + caught.value.hint
