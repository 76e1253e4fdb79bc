"""The specification of the STT service: what it is told, and what it waits for before it starts."""

from pathlib import Path
from typing import Any

import pytest

from supervisor.config.settings import Settings, Stt
from supervisor.services.service_spec import ServiceSpec
from supervisor.stt.stt_spec import stt_service


def spec(folder: Path, **stt: Any) -> ServiceSpec:
    found = stt_service(Settings(stt=Stt(**stt)), folder)
    assert found is not None
    return found


def test_an_engine_that_is_its_own_fallback_is_named_once_and_needs_its_weights(tmp_path: Path) -> None:
    found = spec(tmp_path, engine="faster-whisper", fallback="faster-whisper")
    assert found.options["engines"] == ["faster-whisper"]
    assert len(found.needed) == 2


def test_each_option_is_that_of_its_key(tmp_path: Path) -> None:
    keys = {"model": "base", "language": "de", "prompt": "a prompt", "hotwords": "a hot word"}
    options = spec(tmp_path, **keys).options
    assert {name: options[name] for name in keys} == keys


@pytest.mark.parametrize(("name", "hint"), [("base", "hermesctl models pull base"), ("own", "put a CTrans")])
def test_weights_are_there_when_each_of_their_files_is(tmp_path: Path, name: str, hint: str) -> None:
    weights = spec(tmp_path, model=name).needed[1]
    assert weights.files == tuple(
        tmp_path / name / file for file in ("model.bin", "config.json", "tokenizer.json")
    )
    assert weights.hint.startswith(hint)
