"""The embedded model as a service: which weights it takes, and under which key it serves."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from supervisor.services.service_spec import Needed, ServiceSpec

# As `hermesctl models pull` stores them; a test compares the two.
MODEL_NAME = "smollm2-135m"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_BYTES = 98_362_432

# Loading takes a second from memory; a cold, slow disk may need a minute for a hundred megabytes.
_START_DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class EmbeddedModel:
    """The service and what a worker needs to use it; the address comes with its state."""

    spec: ServiceSpec
    name: str
    api_key: str

    def __repr__(self) -> str:
        """Omit the key."""
        return f"EmbeddedModel(name={self.name!r})"


def embedded_model(models: Path, api_key: str = "") -> EmbeddedModel:
    """Make a new key in every epoch: it is held in memory and written nowhere."""
    api_key = api_key or secrets.token_urlsafe(32)
    options = {
        "model_path": str(models / MODEL_NAME / MODEL_FILE),
        "model_bytes": MODEL_BYTES,
        "alias": MODEL_NAME,
        "api_key": api_key,
    }
    packages = Needed(
        "the embedded model is not installed",
        "pip install 'hermes-supervisor[embedded]', or name another model in [model]",
        packages=("xllamacpp",),
    )
    weights = Needed(
        f"there are no weights of {MODEL_NAME}",
        f"hermesctl models pull {MODEL_NAME}, or name another one in [model]",
        files=(models / MODEL_NAME / MODEL_FILE,),
    )
    needed = (packages, weights)
    spec = ServiceSpec("model", "model_service", options, _START_DEADLINE_SECONDS, needed=needed)
    return EmbeddedModel(spec, MODEL_NAME, api_key)
