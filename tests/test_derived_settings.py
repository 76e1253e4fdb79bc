"""Values derived from the settings: the policy of the core, and what workers may see of the environment."""

import os
from pathlib import Path

import pytest

from supervisor.config.derived import (
    asked_models,
    exposed_interpreters,
    has_setup,
    limits,
    policy,
    program_row,
    runtimes,
    sandbox,
    secrets,
    start_settings,
    visible_keys,
    worker_environment,
)
from supervisor.config.settings import Settings
from supervisor.config.toml_file import SettingsError
from supervisor.processes.cells import Limits
from tests.test_agent_settings import HERMES, load_text

# Every number is another one, so that none can stand for its neighbour.
NUMBERS = """
[workers]
count = 11
spares = 12
memory_max = 13000000
processes_max = 140
files_max = 150
turns_max = 16
pulse = 17
memory_free_min = 18000000
memory_pressure_max = 19
io_pressure_max = 20
cpu_pressure_max = 21
[turns]
attempts_max = 22
resume = "never"
freshness = 23
deadline = 24
silence = 25
outage_max = 26
hold = 27
waiting_max = 28
queue_max = 29
[stt]
echo = false
"""
ON_A_SERVER = "[journal]\nurl = 'postgresql://me@db.example/journal'\n"


def test_each_value_of_the_policy_is_that_of_its_key(tmp_path: Path) -> None:
    found = policy(load_text(tmp_path, NUMBERS))
    assert (found.busy_seats, found.spares, found.turns_per_worker_max) == (11, 12, 16)
    assert (found.pulse_seconds, found.memory_free_bytes_min) == (17, 18_000_000)
    pressures = (found.memory_pressure_max, found.io_pressure_max, found.cpu_pressure_max)
    assert pressures == (19, 20, 21)
    assert (found.attempts_max, found.resume, found.freshness_seconds) == (22, "never", 23)
    assert (found.deadline_seconds, found.silence_seconds) == (24, 25)
    assert (found.outage_seconds_max, found.hold_seconds) == (26, 27)
    assert (found.waiting_max, found.queue_max, found.echo) == (28, 29, False)


def test_the_limits_of_a_cell_are_those_of_their_keys(tmp_path: Path) -> None:
    assert limits(load_text(tmp_path, NUMBERS)) == Limits(13_000_000, 140, 150)


@pytest.mark.parametrize(
    "name",
    ["OTHER_KEY", "bot_token", "A_SECRET", "DB_PASSWORD", "Cloud_Credentials", "PYTHONPATH", "LD_PRELOAD"],
)
def test_workers_see_no_variable_that_looks_like_a_secret_or_names_code(name: str) -> None:
    environment = {name: "x", "LANG": "C", "KEYBOARD": "us"}
    assert worker_environment(Settings(), environment) == {"LANG": "C", "KEYBOARD": "us"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[model]\nbase_url = 'http://a/v1'\nname = 'm'\napi_key_env = 'MINE'\n", "MINE"),
        ("[models.b]\nbase_url = 'http://a/v1'\nname = 'm'\napi_key_env = 'MINE'\n", "MINE"),
        ("[stt]\nengine = 'openai'\nbase_url = 'http://a/v1'\napi_key_env = 'MINE'\n", "MINE"),
        ("[agents.x]\nkind = 'acp'\ncommand = ['a']\nenv_from = ['MINE']\n", "MINE"),
        (ON_A_SERVER, "PGPASSWORD"),
    ],
    ids=["model", "further model", "speech", "agent", "database"],
)
def test_workers_do_not_see_a_variable_that_the_settings_name_as_a_key(
    tmp_path: Path, text: str, name: str
) -> None:
    settings, environment = load_text(tmp_path, text), {name: "x", "LANG": "C"}
    assert worker_environment(settings, environment) == {"LANG": "C"}
    [sentence] = visible_keys(settings, environment)
    assert sentence.startswith(f"workers can read {name}, which holds a key")
    assert visible_keys(settings, {"LANG": "C"}) == ()


def test_secrets_of_an_agent_are_those_it_names_and_all_of_them_must_be_there(tmp_path: Path) -> None:
    settings = load_text(tmp_path, "[agents.x]\nkind = 'acp'\ncommand = ['a']\nenv_from = ['A', 'B']\n")
    environment = {"A": "1", "B": "2", "C": "3"}
    assert secrets(settings, "x", environment) == {"A": "1", "B": "2"}
    assert secrets(settings, "default", environment) == secrets(settings, "nobody", environment) == {}
    with pytest.raises(SettingsError) as caught:
        secrets(settings, "x", {"A": "1"})
    assert caught.value.fault == "the environment variable B, named by [agents.x] env_from, is not set"


def test_a_home_that_is_writable_already_is_shown_once(tmp_path: Path) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    shown = f"[agents.x.sandbox]\nwrite = ['{home}']\n"
    assert sandbox(load_text(tmp_path, f"{HERMES}home = 'mine'\n{shown}"), "x").write == (str(home),)


def test_code_in_the_home_of_the_user_is_no_part_of_a_runtime_if_an_agent_may_write_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "home" / "code").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agent = "[agents.x]\nkind = 'python'\nentry = 'a:b'\npath = '~/code'\n"
    for level, entry in (("workspace", "a:b"), ("home", "")):
        other = f"[agents.other.sandbox]\nlevel = '{level}'\n"
        assert runtimes(load_text(tmp_path / "settings", agent + other))["x"].entry == entry


def test_an_agent_of_another_kind_asks_none_of_our_models(tmp_path: Path) -> None:
    settings = load_text(tmp_path, "[agents.x]\nkind = 'acp'\ncommand = ['a']\n")
    assert asked_models(settings, "x") == ()
    assert policy(settings).endpoints_of("x") == ("agent x",)
    assert asked_models(settings, "default") == ("default",)
    assert policy(settings).endpoints_of("default") != ("agent default",)


def test_a_program_is_looked_up_where_its_agent_says(tmp_path: Path) -> None:
    agent = "[agents.x]\nkind = 'acp'\ncommand = ['tool', 'serve']\n"
    own = load_text(tmp_path, agent + "env = { PATH = '/own' }\n")
    assert program_row(own, "x", {"PATH": "/usual"}) == {"program": "tool", "searched": "/own"}
    common = load_text(tmp_path, agent)
    assert program_row(common, "x", {"PATH": "/usual"}) == {"program": "tool", "searched": "/usual"}
    assert program_row(common, "default", {"PATH": "/usual"}) == {}
    assert start_settings(own, "x") != start_settings(common, "x")
    assert start_settings(own, "default") == start_settings(common, "default")
    stricter = load_text(tmp_path, agent + "[sandbox]\nnetwork = 'none'\n")
    assert start_settings(stricter, "x") != start_settings(common, "x")


def test_all_but_built_in_agents_without_servers_are_set_up_apart(tmp_path: Path) -> None:
    acp = "[agents.acp]\nkind = 'acp'\ncommand = ['a']\n"
    python = "[agents.python]\nkind = 'python'\nentry = 'a:b'\n"
    settings = load_text(tmp_path, HERMES + acp + python + "[agents.plain]\n")
    others = {"x", "acp", "python"}
    assert {name for name in settings.agents if has_setup(settings, name)} == others
    assert policy(settings).apart == others


def test_an_environment_that_nobody_may_write_to_is_not_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    settings = load_text(tmp_path, f"{HERMES}[agents.x.sandbox]\nlevel = 'host'\n")
    assert len(exposed_interpreters(settings)) == 1
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    assert exposed_interpreters(settings) == ()
    assert asked == [(str(tmp_path / "venv"), os.W_OK)]


def test_a_size_that_no_message_can_carry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"\[workers\] memory_max"):
        load_text(tmp_path, "[workers]\nmemory_max = '8388608TiB'\n")
    assert limits(load_text(tmp_path, "[workers]\nmemory_max = '8388607TiB'\n")).memory_bytes_max < 2**63
