"""The journal on disk and the one in memory side by side: after the same commits they hold the same."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.core.state import Session, State
from supervisor.journal.contract import Feeds
from supervisor.journal.journal import Journal
from supervisor.journal.snapshot import durable
from tests.memory_journal import MemoryJournal

_PAGE = 1000


class TwinJournals:
    """Reads come from the file. A new life closes and opens it again, as a restart does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory = MemoryJournal()
        self._file = self._open()

    def _open(self) -> Journal:
        return Journal.open(self._folder / "journal.db", self._folder / "supervisor.lock")

    def new_life(self) -> None:
        self._file.close()
        self._file = self._open()
        self._memory.new_life()

    @property
    def epoch(self) -> int:
        return self._file.epoch

    @property
    def read(self) -> Feeds:
        return self._file.read

    def load(self, policy: Policy) -> State:
        return self._file.load(policy)

    def wake(self, session: str) -> Session | None:
        return self._file.wake(session)

    def known(self, message: str) -> Known | None:
        return self._file.known(message)

    def cursors(self, session: str) -> dict[str, int]:
        return self._file.cursors(session)

    def begun_by(self, session: str) -> str | None:
        return self._file.begun_by(session)

    def commit_now(self, records: Sequence[Record]) -> None:
        self._file.commit_now(records)
        self._memory.commit_now(records)

    def close(self) -> None:
        self._file.close()

    def check_alike(self, sessions: Iterable[str], messages: Iterable[str]) -> None:
        """What either would load, wake, know and tell is the same."""
        file, memory = self._file, self._memory
        assert file.epoch == memory.epoch
        assert durable(file.load(Policy())) == durable(memory.load(Policy()))
        for session in sessions:
            assert file.wake(session) == memory.wake(session), session
            assert file.cursors(session) == memory.cursors(session), session
            assert file.begun_by(session) == memory.begun_by(session), session
            assert _feed(file.read, session) == _feed(memory.read, session), session
        for message in messages:
            assert file.known(message) == memory.known(message), message
        assert file.check() == ()


def _feed(feeds: Feeds, session: str) -> list[object]:
    told = feeds.events_after(session, 0, _PAGE)
    assert len(told) < _PAGE
    return [(each.seq, each.type, each.at, each.fields) for each in told]
