"""Questions that a worker answers from inside its cell: each is an expression that is tried for real."""

import json
from typing import Any

from tests.processes.stage import Stage, script

_TRY = """
import ctypes, errno, json, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(act):
    try:
        return ["did", act()]
    except OSError as error:
        return ["refused", error.strerror]
def called(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def connected(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.connect(address)
        return True
def listening(address):
    global listener
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    return address
def read(path):
    return open(path).read()
def wrote(path):
    open(path, "w").write("x")
    return True
"""


def look(**questions: str) -> str:
    """A script that answers each question, an expression, with what came of it."""
    answers = ", ".join(f"{name!r}: tried(lambda: {asked})" for name, asked in questions.items())
    return script(_TRY, f"print(json.dumps({{{answers}}}, default=str))")


def seen(stage: Stage) -> dict[str, Any]:
    line = next(line for line in stage.said().splitlines() if line.startswith("{"))
    found: dict[str, Any] = json.loads(line)
    return found


async def asked(stage: Stage, **questions: str) -> dict[str, Any]:
    await stage.start(look(**questions))
    return seen(stage)


def refused(answer: list[Any]) -> bool:
    return bool(answer[0] == "refused")
