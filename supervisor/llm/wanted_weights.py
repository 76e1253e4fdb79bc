"""`python -m supervisor.llm.wanted_weights`: weights that the settings name and `models pull` knows."""

from ipc.places import find_places
from supervisor.config.settings import Settings, load
from supervisor.stt.stt_spec import SPEECH_MODELS


def wanted(settings: Settings) -> list[str]:
    """Return no weights where the settings name an endpoint or an own model."""
    names: list[str] = [] if settings.model else [settings.embedded.weights]
    stt = settings.stt
    hears_itself = "faster-whisper" in (stt.engine, stt.fallback) and stt.engine != "off"
    return [*names, stt.model] if hears_itself and stt.model in SPEECH_MODELS else names


if __name__ == "__main__":
    print(*wanted(load(find_places(None).settings_file)))
