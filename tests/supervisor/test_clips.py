"""The clip store: what may be taken in, and what is forgotten when; never what is being transcribed."""

import asyncio
import io
import os
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from ipc.errors import PlaceError
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core.policy import Policy
from supervisor.core.records import MessageAccepted
from supervisor.core.state import BusyMode, Message, Session, State
from supervisor.journal.journal import Journal
from supervisor.stt import clip_store
from supervisor.stt.clip_store import CLIP_BYTES_MAX, ClipStore, Stored, clips_in_use, fault, superfluous
from supervisor.telemetry.log import Log
from tests.no_containment import uncontained
from tests.waiting import nothing_follows, soon

DAY = 86400.0


def spoken(clip: str, seq: int) -> MessageAccepted:
    said = {"key": clip, "kind": "voice", "text": "", "busy": "queue", "clip": clip}
    return MessageAccepted(session="s", at=1.0, seq=seq, message=f"m_{clip}", **said)


def test_names_files_and_sizes_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"sound")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(CLIP_BYTES_MAX + 1)
    assert fault(tmp_path, "good") is None
    for name, said in {
        "../good": "letters and digits",
        "good.ogg": "letters and digits",
        ".": "letters and digits",
        "x" * 65: "letters and digits",
        "absent": "not in the clips folder",
        "empty": "is empty",
        "folder": "not a plain file",
        "link": "not a plain file",
        "pipe": "not a plain file",
        "huge": "the limit is 26,214,400",
    }.items():
        found = fault(tmp_path, name)
        assert found is not None, name
        assert said in found[0]
        assert found[1]


def test_the_old_go_and_then_the_oldest_of_what_is_too_much() -> None:
    stored = [Stored(str(day), day * DAY, 10) for day in range(10)]

    def gone(keep_days: float, bytes_max: int) -> list[str]:
        return sorted(each.name for each in superfluous(stored, 10 * DAY, keep_days * DAY, bytes_max))

    assert gone(20, 1000) == []
    assert gone(3, 1000) == [str(day) for day in range(7)]
    assert gone(20, 25) == [str(day) for day in range(8)]
    assert gone(3, 15) == [str(day) for day in range(9)]


@pytest.mark.parametrize("known", ["known", "unknown"])
def test_pruning_spares_what_is_in_use_and_takes_what_nobody_submitted(tmp_path: Path, known: str) -> None:
    folder = tmp_path / "clips"
    folder.mkdir()
    journal = Journal.open(tmp_path / "journal.db", tmp_path / "lock")
    clock = Clock(not_before=0.0)
    ages = {"fresh": 0.01, "aged": 2.0, "old": 9.0, "busy": 9.0, ".part": 2.0}
    for name, days in ages.items():
        (folder / name).write_bytes(b"sound")
        at = clock.now() - days * DAY
        os.utime(folder / name, (at, at))
    if known == "known":
        journal.commit_now(
            [spoken(name, seq) for seq, name in enumerate(("fresh", "aged", "old", "busy"), 1)]
        )

    async def story() -> None:
        written = io.StringIO()
        store = ClipStore(
            folder=folder,
            check=lambda path: None,
            live=Live(Settings()),
            known=journal.read,
            in_use=lambda: {"busy"},
            clock=clock,
            log=Log(clock, written),
            contain=uncontained(),
        )
        store.open()
        await soon(lambda: "clips.pruned" in written.getvalue())
        store.close()

    asyncio.run(story())
    left = {path.name for path in folder.iterdir()}
    assert left == ({"fresh", "aged", "busy"} if known == "known" else {"fresh", "busy"})
    journal.close()


class Desk:
    """A folder of clips that nobody submitted; from the look `replaced_at` on it is another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clips"
        self.folder.mkdir()
        self.journal = Journal.open(folder / "journal.db", folder / "lock")
        self.clock = Clock(not_before=0.0)
        self.written = io.StringIO()
        self.looks = 0
        self.replaced_at: int | None = None

    def add(self, name: str) -> Path:
        path = self.folder / name
        path.write_bytes(b"sound")
        at = self.clock.now() - 2 * DAY
        os.utime(path, (at, at))
        return path

    def store(self, in_use: Callable[[], set[str]] = set, shared: "SharedRows | None" = None) -> ClipStore:
        return ClipStore(
            folder=self.folder,
            check=self._check,
            live=Live(Settings()),
            known=self.journal.read,
            in_use=in_use,
            clock=self.clock,
            log=Log(self.clock, self.written),
            contain=uncontained(),
            shared=shared,
        )

    def _check(self, folder: Path) -> None:
        self.looks += 1
        if self.replaced_at is not None and self.looks >= self.replaced_at:
            raise PlaceError("the folder was replaced", "put it back")


@pytest.mark.parametrize("look", [1, 2], ids=["before it is listed", "before clips are removed"])
def test_nothing_is_removed_from_a_folder_that_was_replaced(tmp_path: Path, look: int) -> None:
    desk = Desk(tmp_path)
    desk.add("clip")
    desk.replaced_at = look

    async def story() -> None:
        desk.store().prune()
        await soon(desk.written.getvalue)

    asyncio.run(story())
    desk.journal.close()
    assert "clips.kept" in desk.written.getvalue()
    assert (desk.folder / "clip").exists()


def test_clips_are_pruned_again_on_schedule_and_once_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clip_store, "_PRUNE_SECONDS", 0.0)
    desk = Desk(tmp_path)

    async def story() -> None:
        store = desk.store()
        first = desk.add("first")
        store.open()
        pruning = store._pruning
        store.prune()
        assert store._pruning is pruning
        await soon(lambda: not first.exists())
        second = desk.add("second")
        await soon(lambda: not second.exists())
        store.close()
        await nothing_follows()

    asyncio.run(story())
    desk.journal.close()


class SharedRows:
    """The rows of clips of several hosts: what is removed is noted."""

    def __init__(self) -> None:
        self.removed: set[str] = set()
        self.pruned: list[tuple[float, float]] = []

    def remove(self, names: Collection[str]) -> None:
        self.removed |= set(names)

    def prune(self, keep_seconds: float, stray_seconds: float) -> None:
        """Rows without a file here are the business of the journal."""
        self.pruned.append((keep_seconds, stray_seconds))


@pytest.mark.parametrize("is_known", [False, True], ids=["stray", "too old"])
def test_more_clips_than_are_removed_at_once_all_go_but_the_one_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """With their rows, where several hosts have the journal: another may have to transcribe that one."""
    monkeypatch.setattr(clip_store, "_AT_ONCE", 2)
    desk, shared = Desk(tmp_path), SharedRows()
    names = ["a", "b", "c", "d", "busy"]
    for seq, name in enumerate(names, 1):
        path = desk.add(name)
        if is_known:
            desk.journal.commit_now([spoken(name, seq)])
            at = desk.clock.now() - 9 * DAY
            os.utime(path, (at, at))

    async def story() -> None:
        store = desk.store(in_use=lambda: {"busy"}, shared=shared)
        store.prune()
        await soon(lambda: "clips.pruned" in desk.written.getvalue())

    asyncio.run(story())
    desk.journal.close()
    assert [path.name for path in desk.folder.iterdir()] == ["busy"]
    assert shared.removed == {"a", "b", "c", "d"}


def test_a_clip_at_a_limit_is_within_it(tmp_path: Path) -> None:
    longest = "x" * 64
    with (tmp_path / longest).open("wb") as clip:
        clip.truncate(CLIP_BYTES_MAX)
    assert fault(tmp_path, longest) is None
    assert superfluous([Stored("a", 1.0, 10), Stored("b", 2.0, 10)], 3.0, 2.0, 20) == []


def test_rows_of_clips_are_pruned_with_the_times_of_their_files(tmp_path: Path) -> None:
    desk, shared = Desk(tmp_path), SharedRows()

    async def story() -> None:
        desk.store(shared=shared).prune()
        await soon(lambda: shared.pruned)

    asyncio.run(story())
    desk.journal.close()
    assert shared.pruned == [(Settings().stt.clips_seconds, 3600.0)]


def test_only_clips_that_were_removed_are_counted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.add("clip")
    desk.add("folder").unlink()
    (desk.folder / "folder").mkdir()
    os.utime(desk.folder / "folder", (1.0, 1.0))

    async def story() -> None:
        desk.store().prune()
        await soon(desk.written.getvalue)

    asyncio.run(story())
    desk.journal.close()
    assert desk.written.getvalue().endswith("clips.pruned clips=1\n")


def test_a_clip_is_in_use_until_its_transcript_is_there() -> None:
    state, session = State(Policy()), Session("s")
    state.sessions["s"] = session
    for clip, text in (("coming", ""), ("there", "words")):
        session.waiting.append(Message(f"m_{clip}", text, BusyMode.QUEUE, 1.0, clip))
    assert clips_in_use(state) == {"coming"}
