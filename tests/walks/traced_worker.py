"""The worker, recorded; so is the zygote, once it has rehearsed a turn."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.walks import trace
from worker import cell, lifecycle, warm_up
from worker.worker_main import run, stretch

__all__ = ["rehearse", "run", "stretch"]


def rehearse(kind: str, entry: str, code: Sequence[str]) -> None:
    warm_up.rehearse(kind, entry, code)
    # Beats pass through the engine as messages do, and few of them are enough here.
    lifecycle.BEAT_SECONDS = 20.0
    cell.fork_keeper = _recorded(cell.fork_keeper)
    cell.fork_worker = _recorded(cell.fork_worker)
    trace.start()


def _recorded(fork: Callable[..., int]) -> Callable[..., int]:
    def forked(*arguments: Any) -> int:
        child = fork(*arguments)
        if child == 0:
            trace.start()
        return child

    return forked
