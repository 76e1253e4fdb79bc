"""TLS contexts of hermes-agent: made once in a process, and shared by its requests.

AIAgent makes a client for each request, and each client a TLS context, for an `http` address too. To read the
certificates takes longer than all else before a request. A context that the zygote has made in its rehearsal
is in every fork. It is made again when the settings or the files that it came from have changed.
"""

import os
from collections.abc import Callable
from typing import Any

# Variables that hermes-agent looks for certificates by.
_VARIABLES = ("HERMES_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR")


def share_contexts(module: Any, default_context: Callable[[], Any]) -> None:
    """`module` is agent.ssl_verify, `default_context` makes what httpx has without one."""
    resolve = getattr(module, "resolve_httpx_verify", None)
    if resolve is None:
        return
    made: dict[object, Any] = {}

    def resolved(*, ca_bundle: str | None = None, ssl_verify: Any = None, **more: Any) -> Any:
        sources = (ca_bundle or "", *(os.environ.get(name, "") for name in _VARIABLES))
        key = (repr(ssl_verify), *((each, _stamp(each)) for each in sources))
        if key not in made:
            found = resolve(ca_bundle=ca_bundle, ssl_verify=ssl_verify, **more)
            made.clear()  # of files that have changed
            made[key] = default_context() if found is True else found
        return made[key]

    module.resolve_httpx_verify = resolved


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(os.path.expanduser(path))
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
