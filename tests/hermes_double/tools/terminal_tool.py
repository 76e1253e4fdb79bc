"""Commands: a dangerous one runs without a question where no callback is set in its thread."""

import threading
from collections.abc import Callable
from typing import Any

from tools import approval

_callbacks = threading.local()
_cleanup: list[threading.Thread] = []


def set_approval_callback(callback: Callable[..., str] | None) -> None:
    _callbacks.approval = callback


def may_run(command: str) -> bool:
    callback: Any = getattr(_callbacks, "approval", None)
    if callback is None or not approval.is_interactive.get() or approval._get_approval_mode() == "off":
        return True
    return bool(callback(command, "recursive delete", allow_permanent=True) in ("once", "session", "always"))


def _start_cleanup_thread() -> None:
    if not any(thread.is_alive() for thread in _cleanup):
        _cleanup.append(threading.Thread(target=threading.Event().wait, name="cleanup", daemon=True))
        _cleanup[-1].start()
