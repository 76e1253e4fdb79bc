"""The usage of a reply, whatever the API."""

from types import SimpleNamespace
from typing import Any


def normalize_usage(usage: Any, *, provider: str = "", api_mode: str = "") -> SimpleNamespace:
    return SimpleNamespace(prompt_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
