"""The specification of the gateway service: its addresses, and the paths that it works with."""

import importlib.util
from typing import Any

from ipc.places import Places
from supervisor.config.gateway_settings import OFF
from supervisor.config.settings import Settings
from supervisor.services.service_spec import Needed, ServiceSpec

NAME = "gateway"
# It imports and binds an address: a second, or more on a machine that is busy with its start.
_START_DEADLINE_SECONDS = 60.0
_PACKAGES = Needed(
    "the packages for the gateway are not installed",
    "pip install 'hermes-supervisor[gateway]', or set [gateway] listen = \"off\"",
    packages=("httptools", "python_multipart", "uvicorn", "uvloop", "websockets"),
)


def gateway_service(settings: Settings, places: Places) -> ServiceSpec | None:
    """Return None when it is switched off, or is no part of this installation."""
    if settings.gateway.listen == OFF or importlib.util.find_spec(f"{NAME}.__main__") is None:
        return None
    return spec(settings, places)


def spec(settings: Settings, places: Places) -> ServiceSpec:
    gateway = settings.gateway
    options: dict[str, Any] = {
        "listen": gateway.listen,
        "proxies": list(gateway.proxies),
        "hosts": list(gateway.hosts),
        "origins": list(gateway.origins),
        "socket": places.gateway,
        "clips": str(places.clips),
        "tokens": str(places.tokens),
        "token": str(places.token),
    }
    if gateway.tls_cert is not None and gateway.tls_key is not None:
        files = (gateway.tls_cert, gateway.tls_key)
        options["tls_cert"], options["tls_key"] = (
            str(gateway.tls_file(name, settings.file)) for name in files
        )
    return ServiceSpec(
        NAME, NAME, options, _START_DEADLINE_SECONDS, needed=(_PACKAGES,), outlives_version=False
    )
