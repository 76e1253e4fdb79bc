"""`python -m supervisor.llm.wanted_weights`: weights that the settings name and `models pull` knows."""

from ipc.places import find_places
from supervisor.config.settings import Settings, load
from supervisor.llm.embedded import MODEL_NAME
from supervisor.stt.stt_spec import SPEECH_MODELS


def wanted(settings: Settings) -> list[str]:
    """Return no weights where the settings name an endpoint or an own model."""
    names = [] if settings.model else [MODEL_NAME]
    stt = settings.stt
    hears_itself = "faster-whisper" in (stt.engine, stt.fallback) and stt.engine != "off"
    return [*names, stt.model] if hears_itself and stt.model in SPEECH_MODELS else names


if __name__ == "__main__":
    print(*wanted(load(find_places(None).settings_file)))
