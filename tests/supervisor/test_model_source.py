"""The model of turns: an endpoint of the settings, or the embedded one, and what the core is told of both."""

from pathlib import Path

import pytest

from ipc.messages import ModelEndpoint
from supervisor.core.events import Event, ModelChanged
from supervisor.core.state import ModelState
from supervisor.llm.embedded import MODEL_NAME, embedded_model
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
