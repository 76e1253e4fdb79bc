"""Writes one logfmt line per event in a worker to the worker's log; never the text of a message."""

import os
import sys
from typing import TextIO

# The log, once standard error is the agent's.
_own: TextIO | None = None


def stream() -> TextIO:
    """Returns where this worker's log lines go: standard error, as long as no agent writes there."""
    return _own or sys.stderr


def keep_stream() -> None:
    """Keeps the log where it is, whatever becomes of standard error; commands do not inherit it."""
    global _own
    if _own is None:
        _own = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1)


def log(verb: str, **fields: object) -> None:
    words = [f"{name}={_quoted(str(value))}" for name, value in fields.items()]
    print(verb, *words, file=stream(), flush=True)


def _quoted(value: str) -> str:
    if value and not any(character in value for character in ' "=\n'):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
