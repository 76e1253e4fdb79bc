"""`python -m tests.acceptance.crashing_stt_supervisor`: the supervisor with `crashing_stt` for STT."""

from dataclasses import replace
from pathlib import Path

from supervisor import entry
from supervisor.config.settings import Settings
from supervisor.services.service_spec import ServiceSpec
from supervisor.stt import stt_spec

_made = stt_spec.stt_service


def _crashing(settings: Settings, models: Path) -> ServiceSpec | None:
    spec = _made(settings, models)
    return spec and replace(spec, module="tests.acceptance.crashing_stt")


if __name__ == "__main__":
    stt_spec.stt_service = _crashing
    entry.main()
