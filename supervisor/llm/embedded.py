"""The embedded model as a service: which weights it takes, and under which key it serves."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from supervisor.services.service_spec import Needed, ServiceSpec

# The default. All are as `hermesctl models pull` stores them; a test compares the two.
MODEL_NAME = "smollm2-135m"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_BYTES = 98_362_432
# File and size by name.
WEIGHTS = {
    MODEL_NAME: (MODEL_FILE, MODEL_BYTES),
    "qwen2.5-coder-0.5b": ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491_400_064),
    "qwen2.5-coder-1.5b": ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768),
}

# Of one conversation.
CONTEXT_TOKENS = 4096
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


def embedded_model(models: Path, api_key: str = "", name: str = MODEL_NAME) -> EmbeddedModel:
    """Make a new key in every epoch: it is held in memory and written nowhere."""
    file, size_bytes = WEIGHTS[name]
    api_key = api_key or secrets.token_urlsafe(32)
    options = {
        "model_path": str(models / name / file),
        "model_bytes": size_bytes,
        "alias": name,
        "api_key": api_key,
        "own_template": name != MODEL_NAME,
        "context_tokens": CONTEXT_TOKENS,
    }
    packages = Needed(
        "the embedded model is not installed",
        "pip install 'hermes-supervisor[embedded]', or name another model in [model]",
        packages=("xllamacpp",),
    )
    weights = Needed(
        f"there are no weights of {name}",
        f"hermesctl models pull {name}, or name another one in [model]",
        files=(models / name / file,),
    )
    needed = (packages, weights)
    spec = ServiceSpec("model", "model_service", options, _START_DEADLINE_SECONDS, needed=needed)
    return EmbeddedModel(spec, name, api_key)
