"""Sessions that this life has, as the event loop sees them: claimed before an event about them is posted.

`claim` is asked before each event that a client causes. A session that this life has already is answered in
place; any other costs a round trip by a thread that reads, and the event is posted when the answer is there.
So the rules (`decide`) never see a session that another host has, and nothing in them knows of hosts.

States of a session here, by what is in `_owned`, `_taking` and the state of the rules:

| state | owned | taking | in memory | leaves by |
| --- | --- | --- | --- | --- |
| elsewhere, or of no host | no | no | no | claimed ► owned; given ► taking |
| taking | yes | yes | when decided | SessionsTaken is committed ► owned |
| owned | yes | no | until it is at rest | at rest, without a worker, and nothing about it waits ► released; |
| | | | | queued while another host has free seats ► giving |
| giving | yes | no | until decided | SessionsToGive is committed ► elsewhere; it has begun ► owned |

Races, and what decides them:

- *A claim and a release of the same session.* The loop forgets the session before it hands the release to the
  keeper's thread, with the number of its claim. A claim asked for later has a higher number. Whichever the
  server carries out first: the release deletes only a row with its own number.
- *A claim of a session that was given to this life and is not loaded.* It may have an open attempt of
  another life, which is settled before anything else: so SessionsTaken is posted before `claim` answers.
- *A session that comes to rest while an event about it waits in the queue.* Only a session about which no
  event waits is released, and `claim` and `post` happen in one step of the loop.
- *A session at rest whose worker is still there.* It stays here: the worker may remember the conversation,
  and would not know what is said elsewhere meanwhile. So a message goes where its session has a worker.
- *A claim of a session that is being given away.* It waits for the commit that gives it, and is then made as
  any other: it finds the other life, or the session here if that has begun meanwhile.
- *An answer that is older than a departure.* A claim, or a look of the keeper, may have found the session
  here before it was given away or released, and be heard after. Claims are numbered in the order in which
  they are asked for, a look has the number at which it began, and `_left` has the one at which a session
  left: what began before is asked for again.
- *This life is taken over.* Its batches change nothing from then on; what is in `_owned` does not matter.

**Giving.** What has queued here for `_PATIENCE_SECONDS` while no seat is free, or while this host drains, is
given to an open host with free seats. What that reports may be half a second old, so a host that was given
something is left alone for a moment. With local files only a session whose first turn has not begun is given:
it has no files yet.

Release is lazy: it happens with the looks of the keeper, twice a second. A conversation with a message every
moment claims its session once.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count

from supervisor.core.events import DrainAsked, SessionsTaken, SessionsToGive, UndrainAsked
from supervisor.core.giving import can_be_given
from supervisor.core.placing import free_seats
from supervisor.core.state import State
from supervisor.event_sink import AnsweringSink
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError
from supervisor.journal.ownership import Elsewhere, Found, Here
from supervisor.journal.postgres import host_life, owner_rows
from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.lease_keeper import LeaseKeeper, Look, OtherHost, Standing
from supervisor.journal.postgres.owner_rows import Claimed
from supervisor.journal.postgres.read_threads import ReadThreads
from supervisor.journal.postgres.server_rows import ServerRows

_HERE = Here()


# How long a turn may queue before it is given to a free host: longer than a worker needs to become free.
_PATIENCE_SECONDS = 0.3
# Sessions that have left last, for which late answers are recognised.
_LEFT_MAX = 10_000
# How long a host is left alone that was given something.
_LEFT_ALONE_SECONDS = 1.0


class Owners:
    """`labels_of` gives the labels that a host must have for a session."""

    def __init__(
        self, keeper: LeaseKeeper, rows: ServerRows, asking: ReadThreads, life: int, host: Host
    ) -> None:
        self._keeper = keeper
        self._rows = rows
        self._asking = asking
        self._life = life
        self._host = host
        self._labels = frozenset(host.labels)
        self._owned: dict[str, int] = {}
        self._taking: set[str] = set()
        # By session that is being given away: the claims that wait for the outcome.
        self._giving: dict[str, list[Callable[[], None]]] = {}
        self._given_at: dict[int, float] = {}
        self._left: dict[str, int] = {}
        self._numbers = count(1)
        self.others: tuple[OtherHost, ...] = ()
        self.labels_of: Callable[[str], Iterable[str]] = lambda session: ()
        # Told of a life that was given something.
        self.gave: Callable[[int], None] = lambda life: None
        self._engine: AnsweringSink
        self._now: Callable[[], float]
        self._waiting: Callable[[], Iterable[object]] = tuple

    def adopt_left(self) -> list[str]:
        """Make open sessions without an owner those of this life; return all that it has. In a thread."""

        def adopt(connection: Connection) -> dict[str, int]:
            owner_rows.adopt_left(connection, self._host, self._life, self._has_labels)
            return owner_rows.owned(connection, self._life)

        self._owned = self._rows.run(adopt)
        self._numbers = count(max(self._owned.values(), default=0) + 1)
        return list(self._owned)

    def open(
        self,
        engine: AnsweringSink,
        waiting: Callable[[], Iterable[object]],
        now: Callable[[], float],
        ended: Callable[[JournalError], None],
    ) -> None:
        """Begin to take sessions over. `waiting` lists the events that are not decided yet."""
        self._engine, self._waiting, self._now = engine, waiting, now
        self._tell_standing(engine.state)
        self._keeper.open(self._in_loop(self._looked), self._in_loop(ended), self._has_labels)

    def claim(self, session: str, then: Callable[[Found], None], failed: Failed) -> None:
        """Call `then` with where the session is. If it is here, post the event about it within `then`."""
        if session in self._giving:
            self._giving[session].append(lambda: self.claim(session, then, failed))
            return
        if session in self._owned:
            then(_HERE)
            return
        number, is_fit = next(self._numbers), self._is_fit(session)

        def read() -> Claimed:
            return self._rows.run(
                lambda connection: owner_rows.claim(
                    connection, self._host, self._life, session, number, is_fit
                )
            )

        self._asking.ask(read, partial(self._claimed, session, number, then, failed), failed)

    def ask_host(self, name: str, state: str, then: Callable[[bool], None], failed: Failed) -> None:
        """Ask a host by its name to be draining or open; `then` is told whether there is such a host."""

        def ask(connection: Connection) -> bool:
            return connection.execute(host_life.ASK_HOST, (state, name)).rowcount > 0

        self._asking.ask(lambda: self._rows.run(ask), then, failed)

    def is_leaving(self, session: str) -> bool:
        """Return whether the session is being given away."""
        return session in self._giving

    def look_now(self) -> None:
        """Something was given to this life, or another one has ended."""
        self._keeper.nudge()

    def host_of(self, life: int) -> str:
        """Return the name of another host; "" if it is not there any more."""
        return next((each.name for each in self.others if each.life == life), "")

    def _claimed(
        self, session: str, number: int, then: Callable[[Found], None], failed: Failed, found: Claimed
    ) -> None:
        if session in self._giving or number < self._left.get(session, 0):
            self.claim(session, then, failed)
        elif found.life == self._life:
            self._owned[session] = max(number, self._owned.get(session, 0))
            if not found.is_taken:
                self._take([session])
            then(_HERE)
        elif found.life:
            then(Elsewhere(found.life, self.host_of(found.life)))
        else:
            best = max(self._fit_hosts(session), key=lambda each: each.free, default=None)
            then(Elsewhere(best.life, best.name) if best is not None else Elsewhere(0, ""))

    def _looked(self, look: Look) -> None:
        self.others = look.hosts
        if look.asked:
            event = DrainAsked() if look.asked == "draining" else UndrainAsked()
            self._engine.post(event, lambda answer: None)
        self._take_given(look)
        self._release()
        self._give_away()
        self._tell_standing(self._engine.state)

    def _take_given(self, look: Look) -> None:
        busy = self._taking | self._giving.keys()
        given = [name for name in look.given if name not in busy and self._left.get(name, 0) <= look.began]
        # One that is in memory was taken before: only the mark of that is missing.
        in_memory = self._engine.state.sessions
        self._keeper.mark_taken([name for name in given if name in in_memory])
        self._take([name for name in given if name not in in_memory])

    def _take(self, sessions: list[str]) -> None:
        """Load and settle sessions that were given to this life. One that is in memory stays as it is."""
        if not sessions:
            return
        self._taking.update(sessions)
        for session in sessions:
            self._owned.setdefault(session, 0)

        def taken(answer: object) -> None:
            self._taking.difference_update(sessions)
            self._keeper.mark_taken(sessions)

        self._engine.post(SessionsTaken(tuple(sessions)), taken)

    def _give_away(self) -> None:
        state, now = self._engine.state, self._now()
        free = {each.life: each.free for each in self.others if self._takes(each, now)}
        if not any(free.values()) or (free_seats(state) > 0 and not state.draining):
            return
        chosen: dict[int, list[str]] = {}
        for name in list(self._givable(state, now)):
            fit = [each.life for each in self._fit_hosts(name) if free.get(each.life, 0) > 0]
            if fit:
                life = max(fit, key=lambda each: free[each])
                free[life] -= 1
                chosen.setdefault(life, []).append(name)
        for life, names in chosen.items():
            self._given_at[life] = now
            self._give(names, life)

    def _takes(self, other: OtherHost, now: float) -> bool:
        return other.state == "open" and now - self._given_at.get(other.life, 0.0) > _LEFT_ALONE_SECONDS

    def _givable(self, state: State, now: float) -> Iterator[str]:
        """Yield the sessions that have queued for long enough, the first in the queue first."""
        queued = [name for name, place in state.queued.items() if now - place.since > _PATIENCE_SECONDS]
        unopened = [name for name in state.openable if state.draining and name not in state.queued]
        for name in (*queued, *unopened):
            has_files = self._host.has_local_files and state.sessions[name].turns > 1
            if not has_files and name not in self._giving and can_be_given(state, name):
                yield name

    def _give(self, names: list[str], life: int) -> None:
        self._giving.update((name, []) for name in names)

        def given(answer: object) -> None:
            state = self._engine.state
            waiting = [call for name in names for call in self._giving.pop(name)]
            # The release finds no row of this life if the session was given.
            gone = [name for name in names if name not in state.sessions and name in self._owned]
            self._keeper.release([(name, self._owned.pop(name)) for name in gone])
            self._keeper.unmark(gone)
            self._leave(gone)
            for call in waiting:
                call()
            self.gave(life)

        self._engine.post(SessionsToGive(tuple(names), life), given)

    def _leave(self, names: list[str]) -> None:
        """What was asked before now may say that these sessions are here."""
        number = self._keeper.stamp = next(self._numbers)
        for name in names:
            self._left.pop(name, None)
            self._left[name] = number
        # The oldest first: nothing that was asked so long ago is unanswered.
        for name in list(self._left)[:-_LEFT_MAX]:
            del self._left[name]

    def _release(self) -> None:
        state = self._engine.state
        here = (state.sessions, state.seat_of, self._taking, self._giving)
        resting = [name for name in self._owned if not any(name in each for each in here)]
        if not resting:
            return
        asked = {getattr(event, "session", None) for event in self._waiting()}
        released = [(name, self._owned.pop(name)) for name in resting if name not in asked]
        self._keeper.release(released)
        self._leave([name for name, _ in released])

    def _tell_standing(self, state: State) -> None:
        free = max(0, free_seats(state) - len(state.queued))
        self._keeper.standing = Standing(state.intake.value, state.policy.busy_seats, free)

    def _has_labels(self, session: str) -> bool:
        return self._labels.issuperset(self.labels_of(session))

    def _is_fit(self, session: str) -> bool:
        """Whether this host should have a session without an owner: a draining one would let it wait."""
        is_open = self._keeper.standing.state == "open"
        return self._has_labels(session) and (is_open or not any(self._fit_hosts(session)))

    def _fit_hosts(self, session: str) -> list[OtherHost]:
        wanted = self.labels_of(session)
        return [each for each in self.others if each.state == "open" and each.labels.issuperset(wanted)]

    def _in_loop(self, call: Callable[..., None]) -> Callable[..., None]:
        loop = asyncio.get_running_loop()

        def later(*arguments: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: no caller waits
                loop.call_soon_threadsafe(call, *arguments)

        return later
