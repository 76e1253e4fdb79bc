"""docs/hosts.md and deploy/compose.yaml say what the code does."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from hermesctl.commands.hosts import _COLUMNS
from hermesctl.main import COMMANDS
from supervisor.config.database_address import address_of
from supervisor.config.settings import Settings, load
from supervisor.core.state import Intake
from supervisor.journal.postgres import host_list
from tests.house_rules import ROOT

COMPOSE = ROOT / "deploy" / "compose.yaml"
PAGE = (ROOT / "docs" / "hosts.md").read_text()
HOSTS = ("alpha", "beta")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found = yaml.safe_load(COMPOSE.read_text())
    assert isinstance(found, dict)
    return found


def settings_of(compose: dict[str, Any], host: str, folder: Path) -> Settings:
    """As the service of that container reads them; `${NAME}` is what the caller's environment gives."""
    text = re.sub(r"\$\{\w+\}", "http://127.0.0.1:1/v1", compose["configs"][host]["content"])
    (folder / "hermes.toml").write_text(text)
    return load(folder / "hermes.toml")


def test_the_hosts_of_the_compose_file_have_valid_settings(compose: dict[str, Any], tmp_path: Path) -> None:
    environment = compose["services"]["database"]["environment"]
    for host in HOSTS:
        settings = settings_of(compose, host, tmp_path)
        assert settings.hosts.own_name == host
        assert settings.journal.url is not None
        address = address_of(settings.journal.url)
        assert address.ports == (("database", 5432),)
        assert (address.role, address.database) == (environment["POSTGRES_USER"], environment["POSTGRES_DB"])
        (secret,) = compose["services"][host]["secrets"]
        assert (
            settings.journal.password_file
            == f"/run/secrets/{secret}"
            == environment["POSTGRES_PASSWORD_FILE"]
        )
        assert secret in compose["secrets"]


def test_the_containers_run_what_there_is(compose: dict[str, Any], tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for host in HOSTS:
        service = compose["services"][host]
        program, option, home, command = service["command"]
        assert (program, option) == ("hermesctl", "--home")
        assert command in COMMANDS
        (config,) = service["configs"]
        assert (config["source"], config["target"]) == (host, f"{home}/hermes.toml")
        assert service["volumes"] == [f"{host}:{home}"]
        assert host in compose["volumes"]
        (extras,) = re.findall(r"/src\[([a-z,]+)\]", service["build"]["dockerfile_inline"])
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()
        assert (COMPOSE.parent / service["build"]["context"]).resolve() == ROOT
        drain = settings_of(compose, host, tmp_path).turns.drain_seconds
        assert int(service["stop_grace_period"].removesuffix("s")) > drain
        needed = (ROOT / "docs" / "troubleshooting.md").read_text()
        assert all(f"--security-opt {each}" in needed for each in service["security_opt"])


def test_the_page_lists_every_state_of_a_host() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert listed == {state.value for state in Intake} | {"overdue"}
    assert "'overdue'" in host_list._HOSTS


def test_the_page_shows_the_columns_of_the_table() -> None:
    (head,) = re.findall(r"^    (HOST .*)$", PAGE, re.MULTILINE)
    shown = [column.heading.upper() for column in _COLUMNS if column.heading != "labels"]
    assert re.split(r"\s{2,}", head) == shown
