"""`python -m supervisor.weights`: the weights that this instance's settings want and `models pull` knows."""

from ipc.endpoints import find_places
from supervisor.services.embedded import MODEL_NAME
from supervisor.services.speech import SPEECH_MODELS
from supervisor.settings import Settings, load


def wanted(settings: Settings) -> list[str]:
    """Whoever brings weights of their own needs none of ours."""
    names = [] if settings.model else [MODEL_NAME]
    stt = settings.stt
    hears_itself = "faster-whisper" in (stt.engine, stt.fallback) and stt.engine != "off"
    return [*names, stt.model] if hears_itself and stt.model in SPEECH_MODELS else names


if __name__ == "__main__":
    print(*wanted(load(find_places(None).settings_file)))
