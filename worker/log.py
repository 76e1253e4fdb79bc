"""Writes one logfmt line per event in a worker to standard error; never the text of a message."""

import sys


def log(verb: str, **fields: object) -> None:
    words = [f"{name}={_quoted(str(value))}" for name, value in fields.items()]
    print(verb, *words, file=sys.stderr, flush=True)


def _quoted(value: str) -> str:
    if value and not any(character in value for character in ' "=\n'):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
