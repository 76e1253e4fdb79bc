"""The connection of `top`: polls the supervisor, runs the actions of keys, and reconnects."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from hermesctl.client import Client
from hermesctl.errors import CommandError, NotRunning
from hermesctl.event_format import proof, unwritten
from hermesctl.render import one_line
from hermesctl.story import sentences, without_texts
from hermesctl.top.sample import Sample
from ipc.errors import WireError
from ipc.messages import Done, Drain, Interrupt, Scale, Show, TurnState, Undrain
from ipc.places import Places

# More rows than a screen has are still sorted and filtered; beyond this a person does not search by eye.
_ROWS_MAX = 500
_TABLES: tuple[Literal["status", "workers", "sessions", "services"], ...] = (
    "status",
    "workers",
    "sessions",
    "services",
)
_OPEN_STATES: tuple[TurnState, ...] = ("running", "asking", "queued")
# A kill takes milliseconds; the wait for its proof is this long at most.
_PROOF_SECONDS = 5.0
_PROOF_LOOK_SECONDS = 0.05
_ENDINGS = {"turn.done": "was done before", "turn.failed": "had failed before"}

_Expected = TypeVar("_Expected")
Act = Interrupt | Scale | Drain | Undrain | Show


@dataclass(frozen=True)
class Outcome:
    """The result of an action: one sentence, or the lines of a story under its title."""

    sentence: str
    went_well: bool = True
    story: Sequence[str] = ()


class Connection:
    """One connection, made again when the supervisor has restarted."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._client: Client | None = None

    def look(self) -> Sample:
        """Reads all tables; raises NotRunning while no supervisor answers."""
        tables = {name: self._rows(Show(name, limit=_ROWS_MAX), _ROWS_MAX) for name in _TABLES}
        open_turns = (Show("turns", state=state, limit=_ROWS_MAX) for state in _OPEN_STATES)
        turns = [row for show in open_turns for row in self._rows(show, _ROWS_MAX)]
        return Sample(
            at=time.monotonic(),
            now=time.time(),
            status=(tables["status"] or ({},))[0],
            workers=tables["workers"],
            sessions=tables["sessions"],
            turns=turns,
            services=tables["services"],
        )

    def carry_out(self, act: Act) -> Outcome:
        """Returns the result in a sentence; a refusal is one too."""
        try:
            if isinstance(act, Show):
                rows = [without_texts(row) for row in self._rows(act)]
                return Outcome(f"why {act.id}", story=list(sentences(rows)) if rows else ["nothing is known"])
            done = self._ask(act, Done)
            if done.unwritten:
                return Outcome(" · ".join(unwritten(done)))
            if isinstance(act, Interrupt) and done.turns:
                return Outcome(self._proof(done.turns[0]))
            return Outcome(one_line(done.note) or _SAID[type(act)])
        except (CommandError, WireError) as error:
            return Outcome(f"{one_line(error.fault)} ({one_line(error.hint)})", went_well=False)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _rows(self, show: Show, at_most: int | None = None) -> tuple[dict[str, Any], ...]:
        with self._connected() as client:
            return tuple(client.rows(show, at_most))

    def _ask(self, request: Act, expected: type[_Expected]) -> _Expected:
        with self._connected() as client:
            return client.ask(request, expected)

    @contextmanager
    def _connected(self) -> Iterator[Client]:
        if self._client is None:
            self._client = Client(self._places)
        try:
            yield self._client
        except (NotRunning, WireError):
            # An answer to a request of the last connection must not be read on the next one.
            self.close()
            raise

    def _proof(self, turn: str) -> str:
        deadline = time.monotonic() + _PROOF_SECONDS
        pause = threading.Event()
        while time.monotonic() < deadline:
            for event in self._rows(Show("story", id=turn)):
                if event.get("type") == "turn.interrupted":
                    return f"{one_line(turn)} interrupted: {proof(event)}"
                if event.get("type") in _ENDINGS:
                    return f"{one_line(turn)} {_ENDINGS[str(event['type'])]} the interrupt"
            pause.wait(_PROOF_LOOK_SECONDS)
        return f"{one_line(turn)}: no proof yet that it has ended; see `hermesctl workers`"


_SAID: dict[type[Any], str] = {
    Interrupt: "nothing runs there",
    Scale: "the seats follow",
    Drain: "no new turns are taken; d takes them again",
    Undrain: "new turns are taken again",
}


class Watch(threading.Thread):
    """Polls at intervals in a thread of its own, since a request may block, and passes on the results."""

    def __init__(
        self,
        places: Places,
        interval_seconds: float,
        seen: Callable[[Sample | str], None],
        on_outcome: Callable[[Outcome], None],
    ) -> None:
        # A daemon: leaving must not wait for a supervisor that does not answer.
        super().__init__(daemon=True)
        self._connection = Connection(places)
        self._interval_seconds = interval_seconds
        self._seen = seen
        self._on_outcome = on_outcome
        self._acts: queue.SimpleQueue[Act | None] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            self._seen(look_or_reason(self._connection))
            try:
                act = self._acts.get(timeout=self._interval_seconds)
            except queue.Empty:
                continue
            if act is None:
                break
            self._on_outcome(self._connection.carry_out(act))
        self._connection.close()

    def ask(self, act: Act) -> None:
        self._acts.put(act)

    def end(self) -> None:
        self._acts.put(None)


def look_or_reason(connection: Connection) -> Sample | str:
    """Returns a sample, or the reason why there is none."""
    try:
        return connection.look()
    except NotRunning:
        return "not running"
    except (CommandError, WireError) as error:
        return f"no answer ({error.fault}; {error.hint})"
