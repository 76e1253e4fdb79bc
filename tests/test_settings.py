"""hermes.toml: defaults, overrides, and errors that name the key, the line and the remedy."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermesctl.weight_catalogue import find
from ipc.messages import AgentSpec, ModelEndpoint
from ipc.places import SYSTEM
from ipc.service_messages import Sandbox
from supervisor.config.agent_settings import Agent
from supervisor.config.derived import sandboxes
from supervisor.config.endpoints import cautions, model_endpoint
from supervisor.config.fields import AT_ONCE, NEW_WORKERS, keys_of
from supervisor.config.key_remedies import handed_over_from, missing_variable
from supervisor.config.reload import changes
from supervisor.config.settings import DEFAULTS, TABLES, SessionSettings, Settings, load
from supervisor.config.toml_file import SettingsError, find_line
from supervisor.llm.wanted_weights import wanted
from supervisor.stt.stt_spec import SPEECH_MODELS

MODEL = '[model]\nbase_url = "http://127.0.0.1:8000/v1/"\nname = "m"\n'


def _load(folder: Path, text: str) -> Settings:
    path = folder / "hermes.toml"
    path.write_text(text)
    return load(path)


def _error(folder: Path, text: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        _load(folder, text)
    assert caught.value.fault.startswith(str(folder / "hermes.toml"))
    assert str(caught.value) == caught.value.fault
    return caught.value


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    found = load(tmp_path / "hermes.toml")
    assert found.file == tmp_path / "hermes.toml"
    assert found.model is None
    assert (found.workers, found.turns, found.stt) == (DEFAULTS.workers, DEFAULTS.turns, DEFAULTS.stt)
    assert found.turns.deadline_seconds == 1800
    assert found.turns.silence_seconds == 300
    assert found.workers.memory_bytes_max == 2**30
    assert found.agent("default") == AgentSpec(
        "default", "builtin", {"fetch_private": False, "otherwise": "allow"}
    )


def test_every_table_can_be_given(tmp_path: Path) -> None:
    found = _load(
        tmp_path,
        MODEL + "[workers]\ncount = 8\nspares = 0\nmemory_max = '512MB'\npulse = '1m'\ncell = 'sweep'\n"
        "[turns]\nbusy = 'queue'\nfreshness = '1h30m'\ndeadline = 90\nsilence = '0.5s'\n"
        "[stt]\nengine = 'off'\necho = false\n"
        "[agents.poet]\nkind = 'builtin'\nsystem = 'Rhyme.'\n"
        "[sessions.'poems:*']\nagent = 'poet'\n",
    )
    assert (found.workers.seats, found.workers.spares, found.workers.memory_bytes_max) == (8, 0, 512_000_000)
    assert (found.turns.freshness_seconds, found.turns.deadline_seconds) == (5400, 90)
    assert (found.turns.silence_seconds, found.workers.pulse_seconds) == (0.5, 60)
    assert (found.stt.engine, found.stt.echo) == ("off", False)
    assert found.for_session("poems:1") == SessionSettings("poet", "queue")
    options = {"system": "Rhyme.", "tools": Agent().tools, "fetch_private": False, "otherwise": "allow"}
    assert found.agent("poet") == AgentSpec("poet", "builtin", options)
    assert found.agent("nobody") is None


def test_seats_are_counted_per_cpu_this_process_may_use(tmp_path: Path) -> None:
    cpus = len(os.sched_getaffinity(0))
    assert load(tmp_path / "absent").workers.seats == 2 * cpus
    assert _load(tmp_path, "[workers]\nper_cpu = 0.001").workers.seats == 1


def test_the_exact_name_wins_then_the_first_pattern(tmp_path: Path) -> None:
    found = _load(
        tmp_path,
        "[sessions.'a*']\nbusy = 'queue'\n[sessions.'*']\nbusy = 'steer'\n[sessions.abc]\nbusy = 'collect'\n",
    )
    assert found.for_session("ab").busy == "queue"
    assert found.for_session("b").busy == "steer"
    assert found.for_session("abc").busy == "collect"
    assert found.for_session("ABC").busy == "steer"


@pytest.mark.parametrize(
    ("text", "fault", "hint"),
    [
        ("[workers]\n\ncuont = 3\n", "line 3: [workers] cuont is not known", "did you mean count?"),
        ("[wrkers]\ncount = 3\n", "line 1: [wrkers] is not known", "did you mean workers?"),
        ("surprise = 1\n", "line 1: surprise is not known", "the tables here are model, workers"),
        ("[workers]\ncount = 'two'\n", 'line 2: [workers] count = "two"', "whole number from 1"),
        ("[workers]\ncount = true\n", "line 2: [workers] count = true", "whole number from 1"),
        ("[workers]\nspares = -1\n", "line 2: [workers] spares = -1", "from 0 to 1000; the default is 1"),
        ("[workers]\npulse = '1s'\n", 'line 2: [workers] pulse = "1s"', "a duration of at least 3 s"),
        ("[workers]\nmemory_max = '1 gig'\n", 'memory_max = "1 gig"', '"1GiB"'),
        ("[workers]\nper_cpu = 2\ncount = 8\n", "line 2: [workers] per_cpu and count", "keep one"),
        ("[turns]\nbusy = 'now'\n", 'busy = "now"', '"interrupt", "queue", "steer", "collect"'),
        ("[turns]\ndeadline = '30 minutes'\n", 'deadline = "30 minutes"', '"30m"'),
        ("[turns]\ndeadline = 0\n", "deadline = 0", "a number of seconds"),
        ("[turns]\ndeadline = ''\n", 'deadline = ""', "a number of seconds"),
        ("turns.deadline = 'x'\n", 'line 1: [turns] deadline = "x"', "a number of seconds"),
        ("turns = { deadline = 'x' }\n", 'line 1: [turns] deadline = "x"', "a number of seconds"),
        ("[stt]\necho = 'yes'\n", 'echo = "yes"', "true or false"),
        ("[stt]\nengine = 'openai'\n", "line 1: [stt] asks a server and has no base_url", "base_url ="),
        ("[stt]\nlanguage = 'de'\n", 'line 2: [stt] language = "de" is no language of tiny.en', "pull base"),
        ("[stt]\nfallback = 'openai'\n", "line 1: [stt] asks a server and has no base_url", "base_url ="),
        ("[stt]\nfallback = 'off'\n", 'fallback = "off"', '"faster-whisper", "openai"'),
        ("[stt]\napi_key = 'sk-1'\n", "line 2: [stt] api_key holds a secret", "api_key_env"),
        ("[stt]\napi_key_env = 'A'\napi_key_file = 'b'\n", "line 2: [stt] api_key_env and", "keep one"),
        ("[sandbox]\nlevel = 'none'\n", 'line 2: [sandbox] level = "none"', '"workspace", "home", "host"'),
        ("[sandbox]\nnetwork = false\n", "line 2: [sandbox] network = false", '"host", "none"'),
        ("[sandbox]\nquota = '10 gigs'\n", 'line 2: [sandbox] quota = "10 gigs"', '"1GiB"'),
        ("[sandbox]\nread = '/usr'\n", 'line 2: [sandbox] read = "/usr"', "a list of absolute paths"),
        ("[sandbox]\nread = ['src']\n", 'line 2: [sandbox] read = ["src"]', "the default is []"),
        ("[sandbox]\nread = ['/usr/../etc']\n", 'read = ["/usr/../etc"]', 'without ".."'),
        ("[sandbox]\nwrite = ['/']\n", 'line 2: [sandbox] write = ["/"]', 'not "/" itself'),
        ("[sandbox]\nwrite = [7]\n", "line 2: [sandbox] write = [7]", "a list of absolute paths"),
        ("[sandbox]\nwrite = ['']\n", 'line 2: [sandbox] write = [""]', "a list of absolute paths"),
        ("[sandbox]\nwrite = ['~nobody-here/x']\n", "write = [", "a list of absolute paths"),
        (
            "[sandbox]\nread = ['/no/such']\n",
            "line 2: [sandbox] read names /no/such, which does",
            "create it",
        ),
        ("[sandbox]\nread = ['/usr']\nwrite = ['/usr/']\n", "line 2: [sandbox] read names /usr", "one of"),
        ("[sandbox]\nreed = []\n", "line 2: [sandbox] reed is not known", "did you mean read?"),
        ("[agents.x]\nsandbox = 1\n", "line 2: [agents.x] sandbox must be a table", "[agents.x.sandbox]"),
        ("[agents.x.sandbox]\nlvl = 'host'\n", "line 2: [agents.x.sandbox] lvl is not known", "level"),
        ("[agents.x.sandbox]\nlevel = 1\n", "line 2: [agents.x.sandbox] level = 1", '"workspace"'),
        ("[agents.x.sandbox]\nread = ['/no/such']\n", "line 2: [agents.x.sandbox] read names", "create it"),
        (
            "[sandbox]\nread = ['/usr']\n[agents.x.sandbox]\nwrite = ['/usr']\n",
            "line 4: [agents.x.sandbox] write names /usr, and so does read",
            "keep it in one of the two",
        ),
        ("gateway = 1\n", "line 1: gateway must be a table", "write [gateway]"),
        (
            "[agents.x]\nkind = 'hermes'\n",
            "line 1: [agents.x] has no python",
            'python = ".venv/bin/python"',
        ),
        ("[agents.x]\ncommand = 'opencode acp'\n", "[agents.x] command", '["opencode", "acp"]'),
        ("[agents.x]\nenv = { A = 1 }\n", "[agents.x.env]", "variables with their values"),
        ("[agents.x]\nkind = 'robot'\n", 'kind = "robot" cannot be used', '"builtin"'),
        ("workers = 3\n", "line 1: workers must be a table", "[workers]"),
        ("[budgets.week]\ntokens_max = 3\n", "line 1: [budgets.week] is no budget", "[budgets.day]"),
        ("[budgets.day]\ncost_max = 0\n", "line 2: [budgets.day] cost_max = 0", "a number above 0"),
        ("[budgets.turn]\ntokens_max = 0.5\n", "line 2: [budgets.turn] tokens_max = 0.5", "a whole number"),
        ("[[workers]]\ncount = 3\n", "line 1: workers must be a table", "[workers]"),
        ("[agents]\npoet = 'x'\n", "line 2: [agents] poet must be a table", "[agents.poet]"),
        ("[agents.poet]\nkind = 'x'\n", 'line 2: [agents.poet] kind = "x"', '"builtin"'),
        ("[sessions.'t:*']\nagent = 'x'\n", 'line 2: [sessions."t:*"] agent = "x"', "[agents.x]"),
        ("[model]\nname = 'm'\n", "line 1: [model] has no base_url", "embedded model"),
        ("[model]\nbase_url = 'http://h'\n", "line 1: [model] has no name", "embedded model"),
        ("[model]\nname = 'm'\nbase_url = 'h:80'\n", 'line 3: [model] base_url = "h:80"', "http://"),
        (MODEL + "api_key_env = 'A'\napi_key_file = 'b'\n", "line 4: [model] api_key_env and", "keep one"),
        ("[workers\n", "line 1, column 9: this is not TOML", "[name]"),
        ("[workers]\ncount = \n", "line 2, column 9: this is not TOML", "name = value"),
        ("[workers]\ncount = [", "line 2, at its end: this is not TOML", "name = value"),
    ],
)
def test_an_error_names_line_key_value_and_remedy(tmp_path: Path, text: str, fault: str, hint: str) -> None:
    error = _error(tmp_path, text)
    assert fault in error.fault
    assert hint in error.hint


def test_an_agent_replaces_keys_of_the_common_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "src").mkdir()
    found = _load(
        tmp_path,
        "[sandbox]\nread = ['~/src', '/usr/']\nnetwork = 'none'\nquota = '1MiB'\n"
        "[agents.poet]\nsystem = 'Rhyme.'\n"
        "[agents.builder.sandbox]\nlevel = 'home'\nread = []\nwrite = ['~/src', '~/src/']\nquota = '1GiB'\n",
    )
    src = str(tmp_path / "src")
    assert sandboxes(found) == {
        "default": Sandbox(read=(src, "/usr"), network="none"),
        "poet": Sandbox(read=(src, "/usr"), network="none"),
        "builder": Sandbox(level="home", write=(src,), network="none"),
    }
    assert found.sandbox_of("builder").quota_bytes == 2**30
    assert found.sandbox_of("nobody") == found.sandbox
    agent = found.agent("builder")
    assert agent is not None
    assert "sandbox" not in agent.options


def test_a_reload_tells_which_key_of_which_sandbox_has_changed(tmp_path: Path) -> None:
    before = _load(tmp_path, "[agents.x]\nsystem = 'a'\n[agents.y]\n")
    after = _load(
        tmp_path,
        "[sandbox]\nquota = '1GiB'\n[agents.x]\nsystem = 'b'\n[agents.x.sandbox]\nlevel = 'host'\n"
        "[agents.y.sandbox]\nquota = '1GiB'\n[agents.z.sandbox]\nlevel = 'host'\n",
    )
    assert {change.key: change.applies for change in changes(before, after)} == {
        "[sandbox] quota": AT_ONCE,
        "[agents.x.sandbox] level": NEW_WORKERS,
        "[agents.x]": AT_ONCE,
        "[agents.y.sandbox] quota": AT_ONCE,
        "[agents.z]": AT_ONCE,
    }


@pytest.mark.parametrize(
    "line", ["api_key = 'sk-secret'", "apikey = 'sk-secret'", "api_key_env = 'sk-secret'", "api_key_file = 7"]
)
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    error = _error(tmp_path, MODEL + line)
    assert "line 4: [model] api" in error.fault
    assert "secret" not in (error.fault + error.hint).replace("holds a secret", "")


def test_a_password_in_the_address_is_refused(tmp_path: Path) -> None:
    assert "base_url" in _error(tmp_path, "[model]\nname = 'm'\nbase_url = 'http://me:pw@host/v1'").fault


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load(tmp_path)
    path = tmp_path / "hermes.toml"
    path.write_bytes(b"[workers]\n# \xff")
    with pytest.raises(SettingsError, match="line 2: this is not UTF-8"):
        load(path)
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(SettingsError, match="larger than"):
        load(path)


def test_the_embedded_model_needs_no_endpoint() -> None:
    assert model_endpoint(DEFAULTS) is None


def test_an_endpoint_may_have_no_key(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8000/v1"
    assert model_endpoint(_load(tmp_path, MODEL)) == ModelEndpoint(url, "m", "", id=url)


def test_the_key_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = _load(tmp_path, MODEL + "api_key_env = 'HERMES_TEST_KEY'")
    with pytest.raises(SettingsError, match=r"HERMES_TEST_KEY.*is not set") as caught:
        model_endpoint(settings)
    assert "export HERMES_TEST_KEY" in caught.value.hint
    monkeypatch.setenv("HERMES_TEST_KEY", " k-1\n")
    endpoint = model_endpoint(settings)
    assert endpoint is not None
    assert endpoint.api_key == "k-1"
    assert "k-1" not in repr(endpoint)
    assert "k-1" not in repr(settings)


def test_the_remedy_of_a_missing_key_is_one_for_who_starts_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, of_the_machine = tmp_path / "hermes.toml", SYSTEM.settings_file
    monkeypatch.delenv("SYSTEMD_EXEC_PID", raising=False)
    assert "export THE_KEY" in missing_variable(own, "THE_KEY")
    # As a shell inherits it, of which systemd has started an ancestor.
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getppid()))
    assert "export THE_KEY" in missing_variable(own, "THE_KEY")
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
    assert "export" not in missing_variable(own, "THE_KEY")
    hint = missing_variable(of_the_machine, "THE_KEY")
    assert "put the key into /etc/hermes-supervisor/keys/openai" in hint
    assert 'api_key_file = "$CREDENTIALS_DIRECTORY/key_openai"' in hint


def test_a_key_that_systemd_hands_over_is_found_where_it_comes_from(tmp_path: Path) -> None:
    found = handed_over_from(SYSTEM.settings_file, "$CREDENTIALS_DIRECTORY/key_openai")
    assert found == Path("/etc/hermes-supervisor/keys/openai")
    assert handed_over_from(tmp_path / "hermes.toml", "$CREDENTIALS_DIRECTORY/key_openai") is None
    assert handed_over_from(SYSTEM.settings_file, "/srv/key") is None


def test_the_key_comes_from_a_file_beside_the_settings(tmp_path: Path) -> None:
    settings = _load(tmp_path, MODEL + "api_key_file = 'key'")
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        model_endpoint(settings)
    key = tmp_path / "key"
    key.write_text("k-2\n")
    key.chmod(0o600)
    endpoint = model_endpoint(settings)
    assert endpoint is not None
    assert endpoint.api_key == "k-2"
    assert cautions(settings) == ()
    key.chmod(0o644)
    assert f"chmod 600 {key}" in cautions(settings)[0]
    for content in ("", "two\nlines", "kéy", "x" * 20_000):
        key.write_text(content)
        with pytest.raises(SettingsError, match="one line with a key"):
            model_endpoint(settings)


def test_tools_are_offered_to_a_model_of_ones_own_only(tmp_path: Path) -> None:
    for text, tools in ((MODEL, Agent().tools), (MODEL + "[agents.default]\ntools = []", ()), ("", None)):
        agent = _load(tmp_path, text).agent("default")
        assert agent is not None
        assert agent.options.get("tools") == tools


@pytest.mark.parametrize("value", ['"shell"', '["shel"]', '["shell", "shell"]', "[7]", "[[]]", "true"])
def test_an_unknown_tool_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(
        SettingsError, match=r"line 2: \[agents.default\] tools = .* cannot be used"
    ) as caught:
        _load(tmp_path, f"[agents.default]\ntools = {value}\n")
    assert 'a list with any of "shell", ' in caught.value.hint
    assert 'the default is ["shell", ' in caught.value.hint


def test_a_line_is_found_by_its_whole_path() -> None:
    text = "[turns]\ndeadline = 1\n[stt] # voice\n  deadline = 2\n[sessions.'a.b']\nbusy = 'x'\n"
    assert find_line(text, ("turns", "deadline")) == 2
    assert find_line(text, ("stt", "deadline")) == 4
    assert find_line(text, ("sessions", "a.b", "busy")) == 6
    assert find_line(text, ("sessions", "a.b", "agent")) == 5
    assert find_line(text, ("gateway",)) is None


@given(hours=st.integers(0, 99), minutes=st.integers(0, 99), seconds=st.integers(1, 99))
def test_durations_add_up(
    tmp_path_factory: pytest.TempPathFactory, hours: int, minutes: int, seconds: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    found = _load(folder, f"[turns]\ndeadline = '{hours}h{minutes}m{seconds}s'")
    assert found.turns.deadline_seconds == hours * 3600 + minutes * 60 + seconds


@given(
    table=st.sampled_from([*TABLES, "agents.x", "sessions.'y*'"]),
    name=st.sampled_from(sorted({name for table in TABLES.values() for name in keys_of(table)})),
    value=st.sampled_from(["1", "-1", "1e400", "nan", "true", "''", "'x'", "'1h'", "[]", "{}", "07:32:00"]),
)
def test_any_value_is_used_or_refused_by_its_name(
    tmp_path_factory: pytest.TempPathFactory, table: str, name: str, value: str
) -> None:
    text = f"[{table}]\n{name} = {value}\n"
    try:
        _load(tmp_path_factory.getbasetemp(), text)
    except SettingsError as error:
        refused = error
    else:
        return
    assert name in refused.fault or "[model] has no" in refused.fault
    assert refused.hint


def test_the_weights_to_fetch_are_those_the_settings_want(tmp_path: Path) -> None:
    def names(text: str) -> list[str]:
        return wanted(_load(tmp_path, text))

    assert names("") == ["smollm2-135m", "tiny.en"]
    assert names(MODEL) == ["tiny.en"]
    assert names(MODEL + "[stt]\nmodel = 'base'\n") == ["base"]
    assert names(MODEL + "[stt]\nmodel = 'my-own'\n") == []
    assert names(MODEL + "[stt]\nengine = 'off'\nfallback = 'faster-whisper'\n") == []
    remote = "[stt]\nengine = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n"
    assert names(MODEL + remote) == []
    assert names(MODEL + remote + "fallback = 'faster-whisper'\n") == ["tiny.en"]
    for name in names(""):
        assert find(name)
    assert all(find(name) for name in SPEECH_MODELS)


def test_a_key_may_be_handed_over_by_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hermes.toml"
    key = 'api_key_file = "$CREDENTIALS_DIRECTORY/key_openai"'
    file.write_text(f'[model]\nbase_url = "http://127.0.0.1:1/v1"\nname = "m"\n{key}\n')
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "key_openai").write_text("sk-handed-over\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
    endpoint = model_endpoint(load(file))
    assert endpoint is not None
    assert endpoint.api_key == "sk-handed-over"
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(SettingsError, match="CREDENTIALS_DIRECTORY") as refused:
        model_endpoint(load(file))
    assert "systemd" in refused.value.hint
