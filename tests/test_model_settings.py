"""[models.NAME], and the models that an agent asks, in order."""

from dataclasses import replace
from pathlib import Path

import pytest

from ipc.messages import ModelEndpoint
from ipc.places import SYSTEM
from supervisor.config.derived import key_variables, policy
from supervisor.config.endpoints import (
    _KEY_BYTES_MAX,
    cautions,
    key_files,
    model_endpoint,
    model_key_fault,
    named_endpoints,
)
from supervisor.config.live import Live
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError
from supervisor.llm.wanted_weights import wanted
from supervisor.workers.setup_builder import SetupBuilder

MODEL = "[model]\nbase_url = 'http://127.0.0.1:8000/v1'\nname = 'm'\n"


def test_outside_of_the_service_the_source_of_a_credential_is_looked_for(tmp_path: Path) -> None:
    """As doctor and the list of agents do: they have no CREDENTIALS_DIRECTORY."""
    named = 'api_key_file = "$CREDENTIALS_DIRECTORY/key_absent"'
    settings = replace(_load(tmp_path, MODEL + named), file=SYSTEM.settings_file)
    fault = model_key_fault(settings, "default")
    assert fault is not None
    assert fault.fault == f"the key file {SYSTEM.keys / 'absent'} is missing"


def test_an_agent_asks_its_own_model_and_then_its_fallbacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = """
    [models.big]
    base_url = "http://127.0.0.1:1/v1"
    name = "large"
    api_key_env = "HERMES_TEST_KEY"
    price_in = 2
    context_tokens = 32000
    [agents.coder]
    model = "big"
    fallback = ["default"]
    """
    monkeypatch.setenv("HERMES_TEST_KEY", "k-1")
    settings = _load(tmp_path, MODEL + named)
    big, first = "large at http://127.0.0.1:1/v1", "http://127.0.0.1:8000/v1"
    assert named_endpoints(settings) == {
        "big": ModelEndpoint(
            "http://127.0.0.1:1/v1", "large", "k-1", id=big, price_in=2.0, context_tokens=32_000
        )
    }
    endpoints_of = policy(settings).endpoints_of
    assert (endpoints_of("coder"), endpoints_of("default")) == ((big, first), (first,))
    assert key_variables(settings) == {"HERMES_TEST_KEY"}
    spec = settings.agent("coder")
    assert spec is not None
    assert not {"model", "fallback"} & spec.options.keys()


def test_a_setup_has_the_model_of_an_agent_that_prepares_for_it(tmp_path: Path) -> None:
    named = "[models.big]\nbase_url = 'http://127.0.0.1:1/v1'\nname = 'large'\n"
    hermes = "[agents.x]\nkind = 'hermes'\npython = 'venv/bin/python'\nmodel = 'big'\n"
    settings = _load(tmp_path, MODEL + named + hermes + "[agents.y]\nmodel = 'big'\n")
    setup = SetupBuilder(Live(settings), {}, lambda names: [ModelEndpoint("", each) for each in names])
    assert (setup("x").model, setup("y").model) == (ModelEndpoint("", "big"), None)
    (tmp_path / "theirs").mkdir()
    theirs = hermes.replace("model = 'big'", "home = 'theirs'")
    of_theirs = _load(tmp_path, MODEL + named + theirs)
    endpoints = [ModelEndpoint("", "default")]
    assert SetupBuilder(Live(of_theirs), {}, lambda names: endpoints)("x").model is None


def _load(folder: Path, text: str) -> Settings:
    path = folder / "hermes.toml"
    path.write_text(text)
    return load(path)


@pytest.mark.parametrize(
    ("text", "fault", "hint"),
    [
        ("[models.big]\nname = 'm'\n", "line 1: [models.big] has no base_url", "the places that name it"),
        ("[models.default]\nname = 'm'\n", "[models.default] has the name that stands for", "[model]"),
        ("[models.big]\napi_key = 'x'\n", "[models.big] api_key holds a secret", "api_key_env"),
        ("[agents.x]\nmodel = 'big'\n", 'line 2: [agents.x] model names the model "big"', "[models.big]"),
        ("[agents.x]\nfallback = ['y']\n", 'fallback names the model "y", which does not', '"default"'),
        ("[agents.x]\nfallback = ['default']\n", '"default", which it asks before', "every model once"),
    ],
)
def test_a_wrong_model_is_refused_with_its_remedy(tmp_path: Path, text: str, fault: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, text)
    assert fault in caught.value.fault
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "has_tools"), [("", False), ("[embedded]\nweights = 'qwen2.5-coder-0.5b'\n", True)]
)
def test_only_an_embedded_model_that_can_call_tools_is_offered_them(
    tmp_path: Path, text: str, has_tools: bool
) -> None:
    settings = _load(tmp_path, text)
    spec = settings.agent("default")
    assert spec is not None
    assert ("tools" in spec.options) == has_tools
    assert wanted(settings)[0] == settings.embedded.weights


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b" k-1\n", "k-1"),
        (b"k" * _KEY_BYTES_MAX, "k" * _KEY_BYTES_MAX),
        (b"k" * (_KEY_BYTES_MAX + 1), None),
        (b" \n", None),
        (b"one\nanother\n", None),
        ("schlüssel".encode(), None),
    ],
)
def test_a_key_file_holds_one_line_with_a_key(tmp_path: Path, content: bytes, key: str | None) -> None:
    (tmp_path / "key").write_bytes(content)
    settings = _load(tmp_path, MODEL + "api_key_file = 'key'")
    if key is None:
        with pytest.raises(SettingsError, match="does not hold one line with a key"):
            model_endpoint(settings)
    else:
        endpoint = model_endpoint(settings)
        assert endpoint is not None
        assert endpoint.api_key == key


def test_the_key_file_of_a_further_model_is_hidden_from_cells_and_not_to_be_read_by_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "big.key").write_text("key")
    big = "[models.big]\nbase_url = 'http://127.0.0.1:1/v1'\nname = 'm'\napi_key_file = 'big.key'\n"
    settings = _load(tmp_path, big)
    assert key_files(settings) == (tmp_path / "big.key",)
    (tmp_path / "big.key").chmod(0o600)
    assert cautions(settings) == ()
    (tmp_path / "big.key").chmod(0o644)
    (caution,) = cautions(settings)
    assert f"chmod 600 {tmp_path / 'big.key'}" in caution


def test_a_key_file_of_several_tables_is_named_once_and_that_of_speech_too(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("key")
    (tmp_path / "key").chmod(0o644)
    named = "base_url = 'http://127.0.0.1:1/v1'\napi_key_file = 'key'\n"
    speech = f"[stt]\nengine = 'openai'\n{named}"
    for text in (speech, f"{speech}[model]\nname = 'm'\n{named}"):
        assert len(cautions(_load(tmp_path, text))) == 1


def test_a_credential_of_systemd_is_no_file_to_hide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is hidden whole; another process than the service does not know it."""
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    key_file = "api_key_file = '$CREDENTIALS_DIRECTORY/key_openai'\n"
    settings = _load(tmp_path, f"[model]\nbase_url = 'http://127.0.0.1:1/v1'\nname = 'm'\n{key_file}")
    assert key_files(settings) == ()


def test_of_a_long_value_that_cannot_be_used_the_beginning_is_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        _load(tmp_path, f"[model]\nbase_url = '{'x' * 1000}'\nname = 'm'\n")
    assert f'= "{"x" * 58}… cannot be used' in refused.value.fault
