"""[agents.NAME] and [sessions."PATTERN"]: python agents and instructions."""

from pathlib import Path

import pytest

from supervisor.config.derived import exposed_interpreters, policy, runtimes, sandbox
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError

HERMES = "[agents.x]\nkind = 'hermes'\npython = 'venv/bin/python'\n"

ACP = "[agents.x]\nkind = 'acp'\ncommand = ['a']\n"


def load_text(folder: Path, text: str) -> Settings:
    file = folder / "hermes.toml"
    file.write_text(text)
    return load(file)


@pytest.mark.parametrize(
    ("text", "fault", "remedy"),
    [
        ("[agents.x]\nkind = 'python'\n", "[agents.x] has no entry", 'entry = "package.module:function"'),
        ("[agents.x]\nentry = 'a:b'\n", 'is of no use with kind = "builtin"', 'kind = "python"'),
        ("[agents.x]\nkind = 'python'\nentry = 'a.b'\n", "names no function of a module", "module:function"),
        ("[agents.x]\nkind = 'python'\nentry = 'a:b'\npath = 'absent'\n", "is no folder", "create it"),
        ("[agents.x]\nkind = 'python'\nentry = 'a:b'\npath = ['.']\n", "holds the settings", "of their own"),
        ("[agents.x]\nkind = 'hermes'\n", "[agents.x] has no python", "an environment with hermes-agent"),
        (f"{HERMES}home = '/usr'\nmodel = 'default'\n", "model is of no use with home", "config.yaml"),
        ("[agents.x]\nhome = '/'\n", 'is of no use with kind = "builtin"', 'kind = "hermes"'),
        (f"{HERMES}home = 'absent'\n", "is no folder", "create it"),
        (f"{HERMES}home = '.'\n", "holds the settings", "of its own"),
        (f"{HERMES}home = '..'\n", "holds the settings", "of its own"),
        (
            f"{HERMES}home = '/usr'\nfallback = ['b']\n[models.b]\nbase_url = 'http://a/v1'\nname = 'm'\n",
            "fallback is of no use with home",
            "config.yaml",
        ),
        ("[agents.x]\noutput = 'a'\n", 'output is of no use with kind = "builtin"', 'kind = "python"'),
        (
            "[agents.x]\nkind = 'python'\nentry = 'a:b c'\n",
            "names no function of a module",
            "module:function",
        ),
        ("[agents.x]\nkind = 'python'\nentry = 'a:b'\npath = ['..']\n", "holds the settings", "of their own"),
        ("[agents.x]\ncancel_grace = 1\n", 'is of no use with kind = "builtin"', "kills this agent at once"),
        (f"{ACP}cancel_grace = '30.1s'\n", "cancel_grace is more than 30 s", "a duration of at most 30 s"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_with_its_remedy(
    tmp_path: Path, text: str, fault: str, remedy: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, text)
    assert fault in caught.value.fault
    assert remedy in caught.value.hint


@pytest.mark.parametrize(
    ("python", "home"), [("mine/venv/bin/python", "mine"), ("mine/bin/python", "mine/home")]
)
def test_a_home_must_not_overlap_the_code_of_a_zygote(tmp_path: Path, python: str, home: str) -> None:
    """A zygote is in no cell, and the cells may write to the home."""
    (tmp_path / home).mkdir(parents=True)
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, f"[agents.x]\nkind = 'hermes'\npython = '{python}'\nhome = '{home}'\n")
    assert "runs outside of their cells" in caught.value.fault
    assert "out of the home" in caught.value.hint


def test_a_home_must_not_overlap_modules_that_a_zygote_imports_even_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine" / "modules").mkdir(parents=True)
    (tmp_path / "link").symlink_to("mine")
    python = "[agents.y]\nkind = 'python'\nentry = 'a:b'\npath = 'link/modules'\n"
    with pytest.raises(SettingsError, match="runs outside of their cells"):
        load_text(tmp_path, f"{HERMES}home = 'mine'\n{python}")


def test_an_acp_agent_may_take_half_a_minute_to_cancel_and_is_told_its_model(tmp_path: Path) -> None:
    model = "model = 'b'\n[models.b]\nbase_url = 'http://a/v1'\nname = 'm'\n"
    agent = load_text(tmp_path, f"{ACP}cancel_grace = 30\n{model}").agent("x")
    assert agent is not None
    assert (agent.options["cancel_grace_seconds"], agent.options["model"]) == (30, "b")


def test_instructions_of_a_session_follow_those_of_its_agent(tmp_path: Path) -> None:
    settings = load_text(
        tmp_path,
        "[agents.default]\ninstructions = 'Be brief.'\n[sessions.'poem:*']\ninstructions = 'Rhyme.'\n",
    )
    for session, both in (("poem:1", "Be brief.\n\nRhyme."), ("other", "Be brief.")):
        agent = settings.agent("default", session)
        assert agent is not None
        assert agent.options["instructions"] == both


def test_folders_of_an_agents_modules_start_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    settings = load_text(tmp_path, "[agents.x]\nkind = 'python'\nentry = 'a.b:c.d'\npath = 'mine'\n")
    agent = settings.agent("x")
    assert agent is not None
    assert agent.options["path"] == sandbox(settings, "x").code == (str(tmp_path / "mine"),)
    assert sandbox(settings, "default").code == ()


def test_a_home_of_the_user_is_writable_and_decides_the_model(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    settings = load_text(tmp_path, f"{HERMES}home = 'mine'\n{HERMES.replace('.x', '.y')}")
    home = str(tmp_path / "mine")
    own, private = settings.agent("x"), settings.agent("y")
    assert own is not None
    assert private is not None
    assert own.options["home"] == home
    assert "home" not in private.options
    assert sandbox(settings, "x").write == (home,)
    assert sandbox(settings, "y").write == ()
    assert policy(settings).own_model == {"x"}


@pytest.mark.parametrize(
    ("sandbox", "is_exposed"),
    [
        ("", False),
        ("write = ['{}/elsewhere']", False),
        ("write = ['{}/project']", True),
        ("write = ['{}/project/venv/lib', '{}/project/code/part']", True),
        ("write = ['{}/link']", True),
        ("level = 'host'", True),
    ],
    ids=["none", "elsewhere", "above", "below", "through a link", "all"],
)
def test_code_that_an_agent_may_write_is_no_part_of_a_runtime(
    tmp_path: Path, sandbox: str, is_exposed: bool
) -> None:
    for folder in ("elsewhere", "project/venv/bin", "project/venv/lib", "project/code/part", "settings"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to("project")
    agent = f"kind = 'python'\nentry = 'a:b'\npath = '{tmp_path}/project/code'\n"
    python = f"python = '{tmp_path}/project/venv/bin/python'\n"
    other = f"[agents.other.sandbox]\n{sandbox.replace('{}', str(tmp_path))}\n"
    settings = load_text(tmp_path / "settings", f"[agents.x]\n{agent}{python}{other}")
    found = runtimes(settings)["x"]
    code = (str(tmp_path / "project/code"),)
    assert (found.entry, found.path) == (("", ()) if is_exposed else ("a:b", code))
    warnings = exposed_interpreters(settings)
    assert len(warnings) == is_exposed
    assert all(f"agents may write to {tmp_path}/project/venv: move" in each for each in warnings)


def test_a_session_that_tries_an_agent_has_that_agent_and_others_have_theirs(tmp_path: Path) -> None:
    agents = "[agents.coder]\n[agents.reader]\n[sessions.'reader:*']\nagent = 'reader'\n"
    agent_of = policy(load_text(tmp_path, agents)).agent_of
    sessions = ("demo", "reader:1", "isolation:coder", "isolation:reader", "try:coder:1", "try:nobody:1")
    assert [agent_of(session) for session in sessions] == [
        "default",
        "reader",
        "coder",
        "reader",
        "coder",
        "default",
    ]


def test_a_text_with_a_character_that_ends_texts_of_the_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"\[agents.x\] command"):
        load_text(tmp_path, "[agents.x]\nkind = 'acp'\ncommand = [\"a\\u0000b\"]\n")
