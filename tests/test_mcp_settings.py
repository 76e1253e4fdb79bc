"""[mcp.NAME] and mcp_file: what is read, what is refused, and where secrets go."""

from pathlib import Path

import pytest

from ipc.message_parts import ToolServer
from supervisor.config.derived import has_setup, key_variables, runtimes
from supervisor.config.endpoints import key_files
from supervisor.config.live import Live
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError
from supervisor.processes.runtimes import DEFAULT
from supervisor.workers.setup_builder import SetupBuilder

MODEL = "[model]\nbase_url = 'http://127.0.0.1:8000/v1'\nname = 'm'\n"
GOOD = MODEL + "[mcp.time]\ncommand = ['clock']\nargs = ['-u']\nenv_from = ['CLOCK_PASS']\n"


def read(folder: Path, text: str, json: str = "") -> Settings:
    (folder / "mcp.json").write_text(json)
    file = folder / "hermes.toml"
    file.write_text(text)
    return load(file)


def test_a_setup_has_the_servers_of_its_agent_and_their_secrets_only(tmp_path: Path) -> None:
    settings = read(tmp_path, GOOD + "[agents.plain]\nmcp = []\n")
    assert has_setup(settings, "default")
    assert not has_setup(settings, "plain")
    assert key_variables(settings) == {"CLOCK_PASS"}
    setup = SetupBuilder(Live(settings), {"CLOCK_PASS": "tick", "OTHER": "x"}, lambda names: ())("default")
    assert [(each.name, each.command) for each in setup.servers] == [("time", ("clock", "-u"))]
    assert setup.secrets == {"CLOCK_PASS": "tick"}
    assert "tick" not in repr(setup)


def test_a_setup_has_the_secrets_that_its_agent_names(tmp_path: Path) -> None:
    agents = "[agents.x]\nkind = 'acp'\ncommand = ['x']\nenv_from = ['TOKEN', 'MISSING']\nmcp = []\n"
    settings = read(tmp_path, GOOD + agents)
    environment = {"TOKEN": "a-secret-of-mine", "CLOCK_PASS": "tick", "OTHER": "x"}
    assert SetupBuilder(Live(settings), environment, lambda names: ())("x").secrets == {
        "TOKEN": "a-secret-of-mine"
    }


def test_agents_with_servers_share_a_runtime_and_the_others_keep_the_default_one(tmp_path: Path) -> None:
    found = runtimes(read(tmp_path, GOOD + "[agents.plain]\nmcp = []\n[agents.other]\nmcp = ['time']\n"))
    assert found["plain"] == DEFAULT
    assert found["default"] == found["other"] != DEFAULT
    without_tools = read(tmp_path, GOOD.removeprefix(MODEL))
    assert runtimes(without_tools)["default"] == DEFAULT


def test_the_usual_file_is_read_and_hidden_from_cells(tmp_path: Path) -> None:
    json = """{"mcpServers": {
        "git": {"command": "mcp-server-git", "args": ["-v"], "env": {"A": "b"}, "type": "stdio"},
        "web": {"url": "http://10.0.0.1/mcp", "headers": {"X-Api-Key": "k"}},
        "off": {"command": "x", "disabled": true},
        "time": {"command": "replaced"}}}"""
    settings = read(tmp_path, "mcp_file = 'mcp.json'\n" + GOOD, json)
    assert sorted(settings.mcp) == ["git", "time", "web"]
    assert settings.mcp["git"].spec("git").command == ("mcp-server-git", "-v")
    assert settings.mcp["git"].env == {"A": "b"}
    assert settings.mcp["web"].headers == {"X-Api-Key": "k"}
    assert settings.mcp["time"].command == ("clock",)
    assert tmp_path / "mcp.json" in key_files(settings)


@pytest.mark.parametrize(
    ("text", "fault", "hint"),
    [
        (MODEL + "[mcp.x]\n", "[mcp.x] has neither command nor url", "write command"),
        (MODEL + "[mcp.x]\ncommand = ['a']\nurl = 'http://h'\n", "has both command and url", "write command"),
        (MODEL + "[mcp.'a b']\ncommand = ['a']\n", "name that cannot be used", "letters, digits"),
        (MODEL + "[mcp.x]\ncommand = 'a'\n", "[mcp.x] command", "a list of texts"),
        (
            MODEL + "[mcp.x]\nurl = 'http://h'\nheaders = { Authorization = 'k' }\n",
            "holds a key",
            "headers_from",
        ),
        (
            MODEL + "[mcp.x]\nurl = 'http://h'\nheaders = { X-API-Key = 'k' }\n",
            "holds a key in X-API-Key",
            "headers_from",
        ),
        (MODEL + "[mcp.x]\ncommand = ['a']\nclass = { t = 'safe' }\n", "[mcp.x.class]", '"pure"'),
        (MODEL + "[agents.default]\nmcp = ['y']\n", "names 'y', which is no server", "add a table [mcp.y]"),
        ("mcp_file = 7\n" + MODEL, "mcp_file is no path", "above all tables"),
        ("mcp_file = 'absent.json'\n" + MODEL, "cannot be read", "correct the path"),
        ("mcp_file = 'mcp.json'\n" + MODEL, "holds no mcpServers", '{"mcpServers"'),
    ],
)
def test_bad_servers_are_refused_by_name(tmp_path: Path, text: str, fault: str, hint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text)
    assert fault in refused.value.fault
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "server", ['"a b": {"command": "x"}', '"both": {"command": "x", "url": "http://h"}', '"none": {}']
)
def test_a_server_of_the_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, server: str) -> None:
    with pytest.raises(SettingsError, match=r"has a server '(a b|both|none)' that cannot be used"):
        read(tmp_path, "mcp_file = 'mcp.json'\n" + MODEL, f'{{"mcpServers": {{{server}}}}}')


def test_a_file_of_servers_is_read_up_to_a_mebibyte(tmp_path: Path) -> None:
    def file(size: int) -> str:
        text = '{"mcpServers": {"t": {"command": "x"}}, "rest": "%s"}'
        return text % ("r" * (size - len(text) + 2))

    text = "mcp_file = 'mcp.json'\n" + MODEL
    assert list(read(tmp_path, text, file(2**20)).mcp) == ["t"]
    with pytest.raises(SettingsError, match="holds no mcpServers that can be used"):
        read(tmp_path, text, file(2**20 + 2))


def test_a_server_has_each_of_its_keys_and_of_secrets_the_names(tmp_path: Path) -> None:
    program = "[mcp.a]\ncommand = ['a']\nargs = ['b']\nenv = { C = 'd' }\nenv_from = ['E']\n"
    address = "[mcp.f]\nurl = 'http://h'\nheaders = { I = 'j' }\nheaders_from = { K = 'L' }\n"
    settings = read(tmp_path, f"{MODEL}{program}{address}[mcp.f.class]\nt = 'pure'\n")
    assert settings.mcp["a"].spec("a") == ToolServer(
        name="a", command=("a", "b"), environment={"C": "d"}, environment_from=("E",)
    )
    assert settings.mcp["f"].spec("f") == ToolServer(
        name="f", url="http://h", headers={"I": "j"}, headers_from={"K": "L"}, classes={"t": "pure"}
    )
    assert key_variables(settings) == {"E", "L"}
