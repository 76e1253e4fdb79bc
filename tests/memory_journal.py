"""A journal in memory without SQL, for simulations: plain rows, the same fences, all or none.

It shares no code with the journal on disk, so that equal behaviour comes from the contract only.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.core.state import Attempt, BusyMode, Message, Session, State, Turn
from supervisor.journal.errors import JournalError
from supervisor.journal.reader import Told
from tests.memory_rows import Book, Row

_MESSAGE = ("id", "text", "busy", "at", "clip", "seq", "by", "agent", "instructions")


class MemoryJournal:
    """Survives a simulated crash through `new_life`, not the end of the process."""

    def __init__(self) -> None:
        self._book = Book()
        self.epoch = 0
        self.transactions = 0
        self.new_life()

    def new_life(self) -> None:
        """Do what a restart does to the file: raise the epoch, keep everything committed."""
        self.epoch += 1

    @property
    def read(self) -> "MemoryJournal":
        return self

    def load(self, policy: Policy) -> State:
        """Load with the longest wait first: open turns, then waiting messages, then held ones."""
        rows, book = self._book.sessions, self._book
        open_ = (name for name, row in rows.items() if row["turn"])
        waiting = (name for name, row in rows.items() if row["waiting"])
        names = [
            *sorted(open_, key=lambda name: book.turns[rows[name]["turn"]]["position"]),
            *sorted(waiting, key=lambda name: book.messages[rows[name]["waiting"][0]]["position"]),
            *sorted(name for name, row in rows.items() if row["held"]),
        ]
        state = State(policy, self.epoch)
        state.sessions = {name: self._session(name, rows[name]) for name in dict.fromkeys(names)}
        return state

    def wake(self, session: str) -> Session | None:
        row = self._book.sessions.get(session)
        return self._session(session, row) if row else None

    def known(self, message: str) -> Known | None:
        row = self._book.messages.get(message)
        return Known(int(row["seq"]), None if row["clip"] else row["text"]) if row else None

    def cursors(self, session: str) -> dict[str, int]:
        return dict(self._book.cursors.get(session, {}))

    def begun_by(self, session: str) -> str | None:
        return self._book.begun.get(session)

    def session_seq(self, session: str) -> int:
        return int(self._book.sessions[session]["seq"]) if session in self._book.sessions else 0

    def events_after(self, session: str, seq: int, limit: int) -> list[Told]:
        last = min(self.session_seq(session), seq + limit)
        found = (self._book.events[session, each] for each in range(seq + 1, last + 1))
        return [Told(session, each.seq, each.type, each.at, each.fields()) for each in found]

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self.commit_now(records)
        except JournalError as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def commit_now(self, records: Sequence[Record]) -> None:
        self._book.write(records)
        self.transactions += 1

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _session(self, name: str, row: Row) -> Session:
        waiting = deque(self._messages(row["waiting"]))
        turn = self._turn(self._book.turns[row["turn"]]) if row["turn"] else None
        return Session(name, row["seq"], row["turns"], row["held"], waiting, turn)

    def _messages(self, ids: Iterable[str]) -> list[Message]:
        found = (self._book.messages[each] for each in ids)
        return [
            Message(**{**{name: row[name] for name in _MESSAGE}, "busy": BusyMode(row["busy"])})
            for row in found
        ]

    def _turn(self, row: Row) -> Turn:
        attempts = row["attempts"]
        is_running = row["state"] == "running"
        over = [self._book.attempts[row["id"], number] for number in range(1, attempts + 1 - is_running)]
        return Turn(
            row["id"],
            row["session"],
            tuple(self._messages(row["messages"])),
            row["opened_at"],
            row["agent"],
            attempts=attempts,
            losses=row["losses"],
            content_at=row["content_at"],
            earlier_text="".join(attempt["text"] for attempt in over),
            input_tokens=sum(attempt["spent"][0] for attempt in over),
            output_tokens=sum(attempt["spent"][1] for attempt in over),
            cost=sum(attempt["spent"][2] for attempt in over),
            attempt=self._attempt(row["id"], attempts) if is_running else None,
            question=row["question"],
            questions=row["questions"],
        )

    def _attempt(self, turn: str, number: int) -> Attempt:
        row = self._book.attempts[turn, number]
        calls = dict(row["calls"])
        known = row["who"], row["opened_at"], row["level"], row["text"]
        return Attempt(number, *known, calls, row["verdict"], *row["spent"])
