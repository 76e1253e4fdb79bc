"""`python -m tests.walks.traced MODULE …`: a program of ours that records the functions it enters.

What it starts by `ipc.interpreter.command` is recorded too. Workers and the supervisor have modules of their
own beside this one.
"""

import runpy
import sys

from ipc import interpreter
from tests.walks import trace

_RECORDED = ("stt_service", "stt_service.decoder")
_command = interpreter.command


def _traced_command(module: str, *arguments: str, **options: object) -> list[str]:
    traced = ("tests.walks.traced",) if module in _RECORDED else ()
    return _command(*traced, module, *arguments, **options)  # type: ignore[arg-type]


def record() -> None:
    interpreter.command = _traced_command
    trace.start()


if __name__ == "__main__":
    sys.argv[:] = sys.argv[1:]
    record()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
