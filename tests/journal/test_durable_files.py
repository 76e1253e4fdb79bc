"""Files that take a journal's name, or lose it: what is on disk before, and in which order."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor.journal import integrity, maintenance
from supervisor.journal.errors import JournalError
from supervisor.journal.move_files import file_source, file_target
from supervisor.journal.repair import repair
from tests.journal.conftest import open_in
from tests.journal.lives import accepted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal that is closed."""
    journal = open_in(tmp_path)
    journal.commit_now([accepted(1)])
    journal.close()
    return tmp_path / "journal.db"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Syncs and new names in their order, each with the file or folder as it was named then."""
    steps: list[tuple[str, str]] = []

    def noted(name: str, real: Callable[..., Any], named: Callable[..., str]) -> None:
        def step(*arguments: Any) -> Any:
            steps.append((name, named(*arguments)))
            return real(*arguments)

        monkeypatch.setattr(os, name, step)

    noted("fsync", os.fsync, lambda descriptor: Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
    noted("replace", os.replace, lambda old, new: Path(new).name)
    noted("rename", os.rename, lambda old, new: Path(old).name)
    return steps


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_backup_is_on_disk_before_it_has_its_name_and_its_name_before_it_is_told(
    path: Path, steps: list[tuple[str, str]]
) -> None:
    before = open_files()
    maintenance.backup(path, path.with_name("copy.db"), lambda: False)
    (first, part), *others = steps
    assert first == "fsync"
    assert part.startswith("copy.db.")
    assert part.endswith(".part")
    assert others == [("replace", "copy.db"), ("fsync", path.parent.name)]
    assert open_files() == before


def test_a_copy_that_is_not_sound_does_not_get_the_name_of_a_backup(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "findings", lambda connection, look: ("page 7 is lost",))
    with pytest.raises(JournalError, match="the copy is not sound"):
        maintenance.backup(path, path.with_name("copy.db"), lambda: False)
    assert list(path.parent.glob("copy.db*")) == []


def test_a_backup_asks_again_and_again_whether_to_give_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert maintenance._BACKUP_PAGES * 4096 == 8 * 1024 * 1024
    monkeypatch.setattr(maintenance, "_BACKUP_PAGES", 1)
    asked: list[bool] = []

    def give_up() -> bool:
        asked.append(True)
        return False

    maintenance.backup(path, path.with_name("copy.db"), give_up)
    assert len(asked) > 3


def test_a_moved_journal_is_on_disk_before_it_has_its_name(path: Path, steps: list[tuple[str, str]]) -> None:
    target = path.with_name("new.db")
    with file_target(target, path.with_name("clips")) as new:
        new.take_clips([("one", b"sound")])
        assert steps == [("fsync", "one")]
        new.finish(7)
    assert steps[1:] == [("fsync", "new.db.moving"), ("replace", "new.db"), ("fsync", path.parent.name)]
    assert maintenance.stats(target)["epoch"] == 7


def test_the_log_of_a_former_file_does_not_stay_beside_a_moved_journal(path: Path) -> None:
    target = path.with_name("new.db")
    for suffix in ("-wal", "-shm"):
        path.with_name(f"new.db{suffix}").write_bytes(b"of another file")
    with file_target(target, path.with_name("clips")) as new:
        new.finish(7)
    assert [each.name for each in path.parent.glob("new.db*")] == ["new.db"]


def with_log(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").touch()


def test_a_retired_journal_loses_its_log_first_and_the_names_are_on_disk(
    path: Path, steps: list[tuple[str, str]]
) -> None:
    """Were it cut off between them, the file alone would be taken for a journal with an older end."""
    with file_source(path, path.with_name("clips")) as source:
        with_log(path)
        kept = source.retire()
    renamed = [("rename", f"journal.db{suffix}") for suffix in ("-wal", "-shm", "")]
    assert steps == [*renamed, ("fsync", path.parent.name)]
    assert Path(kept).exists()
    assert not list(path.parent.glob("journal.db-*"))


def test_a_repair_keeps_the_log_with_the_damaged_file_before_the_new_one_has_its_name(
    path: Path, steps: list[tuple[str, str]]
) -> None:
    with_log(path)
    repaired = repair(path)
    assert steps == [("rename", name) for name in ("journal.db-wal", "journal.db-shm", "journal.db", "new")]
    assert Path(f"{repaired.kept}-wal").exists()
    assert not list(path.parent.glob("*.repairing"))


def test_a_check_lists_twenty_findings_and_no_more(path: Path) -> None:
    asked: list[str] = []

    class Pages:
        def execute(self, sql: str) -> list[tuple[str]]:
            asked.append(sql)
            return [("ok",)]

    pages: Any = Pages()
    assert integrity.broken_pages(pages, "quick_check") == ()
    assert asked == ["PRAGMA quick_check(20)"]


def test_clips_that_are_moved_are_private_and_in_their_folder_whatever_their_name(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    given = [("one", b"1"), ("../two", b"2")]
    before = os.umask(0o022)
    try:
        with file_target(tmp_path / "journal.db", clips) as target:
            target.take_clips(given)
            assert list(target.clips()) == given
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in clips.iterdir()}
    assert found == {"one": 0o600, "two": 0o600}
    assert list(tmp_path.iterdir()) == [clips], "what was not finished is gone"
