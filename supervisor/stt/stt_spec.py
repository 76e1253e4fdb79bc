"""The specification of the STT service: engine, weights and language."""

from pathlib import Path
from typing import Any

from supervisor.config.endpoints import stt_api_key
from supervisor.config.settings import Settings
from supervisor.services.service_spec import Needed, ServiceSpec

NAME = "stt"
# Loading takes a second or two from memory; a cold, slow disk may need a minute.
_START_DEADLINE_SECONDS = 120.0
# The list of `hermesctl models list`; a test compares the two.
SPEECH_MODELS = ("tiny.en", "base")
# Without any of these the service cannot load a model.
_FILES = ("model.bin", "config.json", "tokenizer.json")
# Clips are decoded here with every engine.
_PACKAGES = Needed(
    "the packages for voice are not installed",
    "pip install 'hermes-supervisor[voice]', or set [stt] engine = \"off\"",
    packages=("av", "ctranslate2", "faster_whisper", "numpy"),
)


def stt_service(settings: Settings, models: Path) -> ServiceSpec | None:
    """Return None when voice is switched off."""
    stt = settings.stt
    if stt.engine == "off":
        return None
    options: dict[str, Any] = {
        "engines": [engine for engine in dict.fromkeys((stt.engine, stt.fallback)) if engine],
        "model": stt.model,
        "models": str(models),
        "language": stt.language,
        "prompt": stt.prompt or "",
        "hotwords": stt.hotwords or "",
        "idle_seconds": stt.idle_seconds or 0.0,
    }
    if "openai" in options["engines"]:
        remote = {"base_url": stt.base_url, "model": stt.remote_model, "api_key": stt_api_key(settings)}
        options["remote"] = remote
    needed = [_PACKAGES]
    if options["engines"] == ["faster-whisper"]:
        needed.append(_weights(stt.model, models))
    return ServiceSpec(NAME, "stt_service", options, _START_DEADLINE_SECONDS, needed=tuple(needed))


def _weights(name: str, models: Path) -> Needed:
    """Check presence only; the service itself checks whether they are whole."""
    folder = models / name
    pull = f"hermesctl models pull {name}"
    hint = pull if name in SPEECH_MODELS else f"put a CTranslate2 Whisper model into {folder}"
    return Needed(f"there are no weights of {name}", hint, tuple(folder / file for file in _FILES))
