"""The STT service: which engine and weights it takes, and what it is told of the language it will hear."""

from pathlib import Path

from supervisor.services.spec import ServiceSpec
from supervisor.settings import Stt

NAME = "stt"
# Loading takes a second or two from memory; a cold, slow disk may need a minute.
_START_DEADLINE_SECONDS = 120.0


def stt_service(stt: Stt, models: Path) -> ServiceSpec | None:
    """None when voice is switched off."""
    if stt.engine == "off":
        return None
    options = {
        "engine": stt.engine,
        "model": stt.model,
        "models": str(models),
        "language": stt.language,
        "prompt": stt.prompt or "",
        "hotwords": stt.hotwords or "",
    }
    return ServiceSpec(NAME, "stt_service", options, _START_DEADLINE_SECONDS)
