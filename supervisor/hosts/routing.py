"""Brings a client's request to the host that has its session: this one, or another by a request to it.

Any host answers. The session is claimed first (supervisor/journal/ownership.py): if this host has it or gets
it, the request is carried out here; else its owner is asked (requests.py). When the owner is gone meanwhile,
or does not have the session any more, the claim is repeated: the key of a message makes that safe.

A host that tells of the events of an open turn has its session. It is asked without a claim, which is a round
trip less; if that is not true any more, it says so, and the session is claimed as any other.

A message with a clip brings its clip along: it becomes a row before its session is asked for.

A request that came from another host is not sent on: `moved` tells that host, which claims again. So a
request is at two hosts at most.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from ipc import messages as wire
from ipc import paging
from ipc.errors import WireError
from supervisor.clock import monotonic
from supervisor.core.state import session_of
from supervisor.hosts.requests import LIMIT_SECONDS, RETRY_SECONDS, Reply, Requests
from supervisor.journal.asking import Asking, Failed
from supervisor.journal.errors import JournalError
from supervisor.journal.ownership import Found, Here, Ownership

# Before a claim is repeated: the host that had the session may just be giving it away.
_AGAIN_SECONDS = 0.05
# Sessions that were last told to have an open turn elsewhere; any other is claimed.
_ELSEWHERE_MAX = 10_000

CarryOut = Callable[[Any, Reply], None]
Moved = Callable[[], None] | None


class Past(Protocol):
    def clip_of(self, message: str) -> tuple[str, str, str] | None: ...


class Clips(Protocol):
    def share(self, name: str, then: Callable[[], None], failed: Failed) -> None: ...


class Routing:
    """`others` are the other lives that are there; `is_here` says whether a session is in memory."""

    def __init__(
        self,
        *,
        owners: Ownership,
        requests: Requests,
        others: Callable[[], Mapping[int, str]],
        clips: Clips,
        past: Past,
        asking: Asking,
        carry_out: CarryOut,
        is_here: Callable[[str], bool],
    ) -> None:
        self._owners = owners
        self._requests = requests
        self._others = others
        self._clips = clips
        self._past = past
        self._asking = asking
        self._carry_out = carry_out
        self._is_here = is_here
        self._loop = asyncio.get_running_loop()
        self._elsewhere: dict[str, int] = {}

    def told(self, session: str, life: int | None) -> None:
        """Another life has told of events of a session; None when its turn has ended, or it is not known."""
        self._elsewhere.pop(session, None)
        if life is not None:
            self._elsewhere[session] = life
            if len(self._elsewhere) > _ELSEWHERE_MAX:
                del self._elsewhere[next(iter(self._elsewhere))]

    def route(self, request: Any, reply: Reply, moved: Moved = None) -> None:
        """Have the request carried out where its session is."""
        failed = partial(_not_read, reply)
        match request:
            case wire.Interrupt(session=None) if moved is None:
                self._interrupt_all(request, reply)
            case wire.Retry() if "/" not in request.turn:  # the id of a message; turns are SESSION/N
                read = partial(self._past.clip_of, request.turn)
                self._asking.ask(read, partial(self._retry_clip, request, reply, moved), failed)
            case wire.Submit(clip=str(clip)) if clip:
                self._clips.share(clip, partial(self._at, request.session, request, reply, moved), failed)
            case _:
                self._at(_session_of(request), request, reply, moved)

    def _retry_clip(
        self, request: wire.Retry, reply: Reply, moved: Moved, found: tuple[str, str, str] | None
    ) -> None:
        """Its message says which session it is of; a message that is not known is refused here."""
        session, _, clip = found or (None, "", "")
        at = partial(self._at, session, request, reply, moved)
        if clip:
            self._clips.share(clip, at, partial(_not_read, reply))
        else:
            at()

    def _at(self, session: str | None, request: Any, reply: Reply, moved: Moved) -> None:
        until = monotonic() + LIMIT_SECONDS
        if session is None:
            self._carry_out(request, reply)
        elif moved is None and (life := self._told_by(session)) is not None:
            claim = partial(self._claim_after_all, session, request, reply, moved, until)
            self._requests.ask(life, request, reply, claim, until)
        else:
            self._claim(session, request, reply, moved, until)

    def _told_by(self, session: str) -> int | None:
        """Return the life that has the session, as far as this host was told."""
        life = self._elsewhere.get(session)
        return life if life in self._others() and not self._is_here(session) else None

    def _claim_after_all(self, session: str, request: Any, reply: Reply, moved: Moved, until: float) -> None:
        self._elsewhere.pop(session, None)
        self._claim(session, request, reply, moved, until)

    def _claim(self, session: str, request: Any, reply: Reply, moved: Moved, until: float) -> None:
        def found(where: Found) -> None:
            if isinstance(where, Here):
                self._carry_out(request, reply)
            elif moved is not None:
                moved()
            elif not where.life:
                fault = f"no host that is there has the labels that session {session} asks for"
                hint = "see [hosts] labels in hermes.toml, or start such a host"
                reply(wire.Refused(fault, hint, RETRY_SECONDS, "unavailable"))
            else:
                self._requests.ask(where.life, request, reply, again, until)

        def again() -> None:
            self._loop.call_later(_AGAIN_SECONDS, self._claim, session, request, reply, moved, until)

        if monotonic() < until:
            self._owners.claim(session, found, partial(_not_read, reply))
        else:
            fault = f"session {session} has moved from host to host for {LIMIT_SECONDS:g} s"
            reply(wire.Refused(fault, "send it again", RETRY_SECONDS, "unavailable"))

    def _interrupt_all(self, request: wire.Interrupt, reply: Reply) -> None:
        """Interrupt what runs here and at every other host; answer once, after the last of them."""
        lives, until = list(self._others()), monotonic() + LIMIT_SECONDS
        answers: list[wire.Answer] = []

        def one_done(answer: wire.Answer) -> None:
            answers.append(answer)
            if len(answers) == len(lives) + 1:
                reply(_together(answers))

        self._carry_out(request, one_done)
        for life in lives:
            # The sessions of a life that is gone are interrupted where they are now.
            self._requests.ask(life, request, one_done, partial(one_done, wire.Done()), until)


def _session_of(request: Any) -> str | None:
    """Return the session that a request is about; None for one that is carried out by any host."""
    match request:
        case wire.Queue(act="list"):
            return None  # read from the journal
        case wire.Submit() | wire.Begin() | wire.Interrupt() | wire.Queue() | wire.Seen():
            return request.session
        case wire.Respond():
            return session_of(request.question)
        case wire.Retry():
            return session_of(request.turn)
    return None


def _together(answers: list[wire.Answer]) -> wire.Answer:
    """One answer for an interrupt at every host."""
    done = [each for each in answers if isinstance(each, wire.Done)]
    refused = [each for each in answers if isinstance(each, wire.Refused)]
    if not done:
        return refused[0]
    turns = [turn for each in done for turn in each.turns]
    note = "; ".join(each.error for each in refused) or ("" if turns else "nothing runs")
    page = paging.done(turns, note)
    return wire.Done(
        page.turns,
        page.note,
        page.more + sum(each.more for each in done),
        tuple(killed for each in done for killed in each.killed if killed.turn in page.turns),
        next((each.unwritten for each in done if each.unwritten), ""),
    )


def _not_read(reply: Reply, error: JournalError | WireError) -> None:
    reply(wire.Refused(error.fault, error.hint, RETRY_SECONDS, "unavailable"))
