"""The model of turns: an endpoint of the settings, or the embedded one, and what the core is told of both."""

from pathlib import Path

import pytest

from ipc.messages import ModelEndpoint
from supervisor.core.events import Event, ModelChanged
from supervisor.core.state import ModelState
from supervisor.llm.embedded import MODEL_NAME, WEIGHTS, embedded_model
from supervisor.llm.model_source import ModelSource
from supervisor.services.service import ServiceChanged

ENDPOINT = ModelEndpoint("http://127.0.0.1:9/v1", "m", "key")


def made(endpoint: ModelEndpoint | None, key: str = "") -> tuple[ModelSource, list[Event]]:
    told: list[Event] = []
    return ModelSource(endpoint, {}, Path("/models"), told.append, key), told


def changed(state: str, address: str = "", detail: str = "", hint: str = "") -> ServiceChanged:
    return ServiceChanged("model", state, address, detail, hint)


def test_an_endpoint_is_ready_from_the_start() -> None:
    source, told = made(ENDPOINT)
    assert told == []
    source.open()
    assert told == [ModelChanged(ModelState.READY)]
    assert (source.endpoint, source.spec, source.name) == (ENDPOINT, None, "m")
    assert source.describe() == "m at http://127.0.0.1:9/v1"
    source.service_changed(changed("failed"))
    assert len(told) == 1


def test_the_embedded_model_is_used_while_it_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    source, told = made(None, key="the key")
    source.open()
    assert told == []
    assert (source.endpoint, source.name) == (None, "embedded")
    assert source.describe() == f"embedded {MODEL_NAME} (a demonstration), waiting"
    assert source.spec is not None
    assert source.spec.options["api_key"] == "the key"
    source.service_changed(changed("starting"))
    source.service_changed(changed("ready", address="http://127.0.0.1:1/v1"))
    known = ModelEndpoint("http://127.0.0.1:1/v1", MODEL_NAME, "the key", id="embedded", context_tokens=4096)
    assert source.endpoint == known
    assert source.name == MODEL_NAME
    assert capsys.readouterr().err == "the embedded model is ready\n"
    assert told == [ModelChanged(ModelState.WAITING), ModelChanged(ModelState.READY)]


@pytest.mark.parametrize("state", ["failed", "waiting"])
def test_a_fault_of_the_embedded_model_stays_until_it_is_ready(state: str) -> None:
    source, told = made(None)
    source.service_changed(changed(state, detail="no weights", hint="pull them"))
    source.service_changed(changed("starting"))
    assert told == [ModelChanged(ModelState.FAILED, "no weights", "pull them")]
    source.service_changed(changed("ready"))
    assert told[-1] == ModelChanged(ModelState.READY)


def test_a_change_of_the_settings_takes_the_place_of_the_model() -> None:
    source, told = made(None)
    spec = source.spec
    source.change(None, {})
    assert source.spec is spec
    assert told == []
    source.change(ENDPOINT, {})
    assert (source.spec, source.endpoint) == (None, ENDPOINT)
    assert told == [ModelChanged(ModelState.READY)]
    source.change(None, {})
    assert source.spec is not None
    assert source.endpoint is None
    assert told[-1] == ModelChanged(ModelState.WAITING)


def test_the_key_is_new_every_time_and_never_shown(tmp_path: Path) -> None:
    first, second = embedded_model(tmp_path), embedded_model(tmp_path)
    assert first.api_key != second.api_key
    assert len(first.api_key) > 32
    assert first.api_key not in repr(first)
    assert MODEL_NAME in repr(first)
    assert embedded_model(tmp_path, "given").api_key == "given"


def test_further_models_are_those_of_the_settings_of_now() -> None:
    source, _ = made(ENDPOINT)
    big = ModelEndpoint("http://127.0.0.1:8/v1", "big", "key")
    source.change(ENDPOINT, {"big": big})
    assert source.of(["big", "default", "unknown"]) == (big, ENDPOINT)
    source.change(ENDPOINT, {})
    assert source.of(["big", "default"]) == (ENDPOINT,)


def test_further_models_change_while_the_embedded_one_is_the_default() -> None:
    """A turn that names one uses the address and the key of the last reload."""
    source, told = made(None)
    before, now = (ModelEndpoint(f"http://127.0.0.1:{port}/v1", "big", "key") for port in (8, 9))
    for endpoint in (before, now):
        source.change(None, {"big": endpoint})
        assert source.of(["big"]) == (endpoint,)
    source.change(None, {})
    assert source.of(["big"]) == ()
    assert told == []


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_service_of_the_embedded_model_is_told_of_the_weights_that_the_settings_name(name: str) -> None:
    spec = ModelSource(None, {}, Path("/models"), lambda event: None, "key", name).spec
    assert spec is not None
    file, size_bytes = WEIGHTS[name]
    assert spec.options == {
        "model_path": f"/models/{name}/{file}",
        "model_bytes": size_bytes,
        "alias": name,
        "api_key": "key",
        # That of the smallest weights is ours: their own one is not used.
        "own_template": name != "smollm2-135m",
        "context_tokens": 4096,
    }
    assert [path for needed in spec.needed for path in needed.files] == [Path(f"/models/{name}/{file}")]
