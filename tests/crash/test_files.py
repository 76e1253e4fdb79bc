"""Files as a power cut could leave them: the log cut anywhere, both files copied at any instant of work."""

import copy
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from supervisor.core.decide import decide
from supervisor.core.events import Recovered
from supervisor.core.policy import Policy
from supervisor.journal.journal import Journal
from tests.acceptance.sight import state_of
from tests.checker import Sight, check_history
from tests.crash.audience import Audience
from tests.crash.lives import PATIENCE_SECONDS, Forge, Home
from tests.crash.scenarios import all_plays
from tests.waiting import until

SEED = 20_264
SHARDS = 4
# The layout of SQLite's write-ahead log: a header, then frames of a header and a page each.
HEADER_BYTES, FRAME_HEADER_BYTES, PAGE_BYTES = 32, 24, 4096
FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
RANDOM_CUTS = 80
# Of an event: its session and seq.
Place = tuple[str, int]
COPIES = 40


@dataclass(frozen=True)
class Left:
    """What a life left: its file, its log that was never carried over, and the events."""

    file: Path
    log: bytes
    events: list[dict[str, Any]]

    def cut(self, folder: Path, length: int) -> Path:
        """The same with only the beginning of the log."""
        folder.mkdir()
        journal = folder / "journal.db"
        shutil.copy(self.file, journal)
        Path(f"{journal}-wal").write_bytes(self.log[:length])
        return journal


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Left:
    home = Home(tmp_path_factory.mktemp("left") / "home", forge)
    audience = Audience(home.places, all_plays())
    assert home.live(audience, when="log") == -signal.SIGKILL, home.log()
    history = check_history(home.places.journal, audience.sights)
    journal = home.places.journal
    return Left(journal, Path(f"{journal}-wal").read_bytes(), history.events)


def recover(journal: Path) -> set[Place]:
    """A new life up to the point where it would open its doors; which events the old one had left."""
    opened = Journal.open(journal, journal.with_name("lock"))
    found = set(opened._reading.execute("SELECT session, seq FROM events"))
    decision = decide(opened.load(Policy()), Recovered(), time.time())
    if decision.records:
        opened.commit_now(decision.records)
    opened.close()
    return found


def check_recovery(
    journal: Path, sights: Iterable[Sight] = ()
) -> tuple[set[Place], dict[Place, dict[str, Any]]]:
    """After a recovery the history is whole, and nobody works on anything."""
    found = recover(journal)
    history = check_history(journal, sights)
    assert not [attempt for attempt in history.attempts if attempt["state"] in ("open", "stopped")]
    return found, by_place(history.events)


def by_place(events: list[dict[str, Any]]) -> dict[Place, dict[str, Any]]:
    return {(event["session"], event["seq"]): event for event in events}


def check_cuts(left: Left, folder: Path, lengths: Iterable[int]) -> None:
    """Whatever the length, a beginning of the history is there, and a longer log never has less of it."""
    before: set[Place] = set()
    told = by_place(left.events)
    for length in lengths:
        found, events = check_recovery(left.cut(folder / str(length), length))
        kept = {place: events[place] for place in found}
        assert kept.items() <= told.items(), f"a log of {length} bytes tells another history"
        assert found >= before
        before = found
        shutil.rmtree(folder / str(length))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_log_cut_at_any_frame_recovers(
    left: Left, tmp_path: Path, shard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    frames, rest = divmod(len(left.log) - HEADER_BYTES, FRAME_BYTES)
    assert (rest, frames > 100) == (0, True)
    check_cuts(
        left, tmp_path, (HEADER_BYTES + FRAME_BYTES * each for each in range(shard, frames + 1, SHARDS))
    )
    if shard == 0:
        with capsys.disabled():
            print(f"\ncrash: the log was cut at each of its {frames} frames", file=sys.stderr)


def test_a_log_cut_at_any_byte_recovers(left: Left, tmp_path: Path) -> None:
    lengths = random.Random(SEED).sample(range(len(left.log)), RANDOM_CUTS)
    check_cuts(left, tmp_path, [0, 1, HEADER_BYTES - 1, *sorted(lengths)])


def test_copies_taken_at_any_instant_of_work_recover(tmp_path: Path, forge: Forge) -> None:
    home = Home(tmp_path / "home", forge)
    audience = Audience(home.places, all_plays("a-") | all_plays("b-") | all_plays("c-"))
    chance = random.Random(SEED)
    copies: list[tuple[Path, list[Sight]]] = []

    def take() -> bool:
        if len(copies) < COPIES and chance.random() < 0.2:
            folder = tmp_path / f"copy{len(copies)}"
            copy_while_stopped(home, folder)
            copies.append((folder / "journal.db", copy.deepcopy(audience.sights)))
        return audience.is_content

    home.begin()
    try:
        audience.visit(home.has_ended, take, PATIENCE_SECONDS)
    finally:
        home.kill()
    assert len(copies) == COPIES
    for journal, sights in copies:
        check_history(journal, sights)
        check_recovery(journal, sights)


def copy_while_stopped(home: Home, folder: Path) -> None:
    """Both files as they are at one instant, whatever the supervisor is in the middle of."""
    folder.mkdir()
    os.kill(home.pid, signal.SIGSTOP)
    try:
        until(lambda: state_of(home.pid) == "T")
        for ending in ("", "-wal"):
            shutil.copy(f"{home.places.journal}{ending}", folder / f"journal.db{ending}")
    finally:
        os.kill(home.pid, signal.SIGCONT)
