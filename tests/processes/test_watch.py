"""The watch over workers by itself: whose memory is too large, and what cells do not show."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ipc.places import Places
from supervisor.processes import visibility
from supervisor.processes.cells import BEST, CellUnavailable
from supervisor.processes.exit_reason import too_large
from supervisor.processes.usage import TreeUsage
from supervisor.processes.visibility import boundary, hidden
from supervisor.processes.watch import Watch
from supervisor.processes.worker_process import KILLED
from tests.waiting import soon

_LIMIT = 100 << 20


def watching(kill_asked_at: float | None, limit: int, used: int) -> tuple[list[int], Any]:
    """Which worker is killed of one that is there and of one that has ended, and the former."""
    worker = SimpleNamespace(memory_bytes_max=limit, kill_asked_at=kill_asked_at, kill_reason=KILLED)
    killed: list[int] = []
    watch = Watch(cast(Any, {1: worker}), killed.append)
    watch._usages = {number: TreeUsage(7, used, 0.0, 1, 1.0) for number in (1, 2)}
    watch._end_the_too_large()
    return killed, worker


def test_a_worker_is_killed_once_above_its_limit_and_for_that_reason() -> None:
    killed, worker = watching(None, _LIMIT, _LIMIT + 1)
    assert (killed, worker.kill_reason) == ([1], too_large(_LIMIT))
    assert watching(None, _LIMIT, _LIMIT)[0] == []
    killed, worker = watching(3.0, _LIMIT, _LIMIT + 1)
    assert (killed, worker.kill_reason) == ([], KILLED), "it is being killed for another reason"


def test_a_worker_without_a_limit_may_take_any_memory() -> None:
    assert watching(None, 0, _LIMIT)[0] == []


def test_a_watch_that_is_stopped_reads_no_more() -> None:
    async def act() -> None:
        watch = Watch({}, lambda incarnation: None)
        watch.stop()
        watch.start()
        assert watch._task is not None
        watch.stop()
        await soon(watch._task.cancelled)

    asyncio.run(act())


def test_folders_credentials_and_keys_are_hidden_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, keys, given = (tmp_path / name for name in ("home", "keys", "credentials"))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(given))
    places = Places(home / "config", home / "state", tmp_path / "runtime")
    found = hidden.__wrapped__(places, (keys / "model", home / "config" / "mcp"))
    assert found == tuple(
        sorted(str(path) for path in (given, home / "config", home / "state", keys / "model", places.runtime))
    )
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert str(given) not in hidden.__wrapped__(places, ())


def test_only_the_best_cell_needs_its_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> bytes:
        raise CellUnavailable("no compiler", "none")

    monkeypatch.setattr(visibility, "cell_filter", missing)
    places = Places(tmp_path, tmp_path, tmp_path)
    user = cast(Any, SimpleNamespace(other=None))
    assert boundary(places, user, "sweep").cell_filter == b""
    with pytest.raises(CellUnavailable, match="no compiler"):
        boundary(places, user, BEST)
