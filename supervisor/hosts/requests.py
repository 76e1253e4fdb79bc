"""Requests between hosts: a request about a session elsewhere is carried out by its owner and answered there.

The host that a client asks is the asker, the one that has the session the answerer. A request is a row of the
table `requests` and a notice to the answerer's life; the answer is in the same row, and a notice back. The
answerer carries a request out as it does one of its own clients, so it answers after its commit.

    asked ──┬── answered ─────────────────────────► the client gets the answer
            ├── the answerer has not, or not any ─┬► who has the session is asked again (`moved`)
            │   more, the session                 │
            ├── the answerer's life is gone ──────┘
            ├── no answer within LIMIT_SECONDS ───► refused by name, with a time to try again
            └── the database does not answer ─────► refused with its reason

Notices get lost and come twice. The asker looks at the rows of requests that are not answered soon, and after
each connect; the answerer after each connect. A request that it has taken is not taken again, by its id.

A request that was refused for its time may still have been carried out, as with any answer that is lost on
its way to a client. The key of a message makes it safe to send it again. But it must not be carried out late:
an interrupt would end another turn. So the answerer ignores a request that is older than the limit, by the
clock of the server: its process may have been stopped while the notice waited.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import msgspec

from ipc import messages as wire
from ipc.errors import WireError
from supervisor.clock import monotonic
from supervisor.containment import Containment, Fault
from supervisor.hosts.peers import Peers
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError

# Less than a client waits for its answer (hermesctl/client.py).
LIMIT_SECONDS = 8.0
RETRY_SECONDS = 5.0
# An answer comes within milliseconds; after this its row is looked at.
_LOOK_SECONDS = 0.5
# Answered requests are deleted together.
_FORGET_SECONDS = 1.0
# Ids of requests that were taken, kept longer than a notice can come again.
_TAKEN_MAX = 10_000

Reply = Callable[[wire.Answer], None]
_Change = wire.Submit | wire.Begin | wire.Interrupt | wire.Queue | wire.Respond | wire.Retry | wire.Seen
_Body = _Change | wire.Show
_Given = wire.Accepted | wire.Done | wire.Refused | wire.Table
# Instead of an answer: the answerer does not have the session.
_MOVED = "moved"


class Unanswered(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def from_life(self) -> int: ...
    @property
    def body(self) -> str: ...
    @property
    def asked_at(self) -> float: ...


class Stand(Protocol):
    @property
    def answer(self) -> str | None: ...
    @property
    def is_gone(self) -> bool: ...


class Rows(Protocol):
    """The rows of requests: what is looked up comes back in the loop."""

    def ask(self, id: str, life: int, body: str, failed: Failed) -> None: ...
    def answer(self, id: str, life: int, answer: str, failed: Failed) -> None: ...
    def body(self, id: str, then: Callable[[str], None]) -> None: ...
    def forget(self, ids: Collection[str]) -> None: ...
    def unanswered(self, then: Callable[[Sequence[Unanswered]], None]) -> None: ...
    def stands(
        self, ids: Collection[str], then: Callable[[Mapping[str, Stand]], None], failed: Failed
    ) -> None: ...


class Notices(Protocol):
    @property
    def life(self) -> int: ...
    @property
    def server_now(self) -> float | None: ...


@dataclass(slots=True)
class _Pending:
    """A request that is not answered yet."""

    life: int
    reply: Reply
    moved: Callable[[], None]
    timer: asyncio.TimerHandle | None = None


class Requests:
    """Both sides. `serve` carries out a request of another host: its reply, and what to do if it moved."""

    def __init__(
        self,
        *,
        notices: Notices,
        rows: Rows,
        peers: Peers,
        serve: Callable[[Any, Reply, Callable[[], None]], None],
        contain: Containment,
    ) -> None:
        self._notices = notices
        self._rows = rows
        self._peers = peers
        self._serve = contain.around("request", serve, _not_served)
        self._loop = asyncio.get_running_loop()
        # A life goes on in the next image of its process, which counts from 1 again.
        self._mark = f"{notices.life}.{secrets.token_hex(4)}"
        self._numbers = count(1)
        self._asked: dict[str, _Pending] = {}
        self._over: list[str] = []
        self._forgetting: asyncio.TimerHandle | None = None
        self._taken: dict[str, None] = {}
        # Answers that the database did not take; they are given again after the next connect.
        self._unsent: list[tuple[str, int, Any]] = []
        peers.on("ask", self._was_asked)
        peers.on("answer", self._was_answered)
        peers.on_connected(self._connected)

    # --- the asker --------------------------------------------------------------------------------------

    def ask(
        self, life: int, request: msgspec.Struct, reply: Reply, moved: Callable[[], None], until: float
    ) -> None:
        """Have a request carried out by another life; `until` is when its client is refused at the latest.

        `moved` is called instead of the reply when that life does not have the session.
        """
        id = f"{self._mark}.{next(self._numbers)}"
        asked = self._asked[id] = _Pending(life, reply, moved)
        asked.timer = self._loop.call_later(_LOOK_SECONDS, self._look, id, until)
        body = msgspec.json.encode(request).decode()
        self._rows.ask(id, life, body, lambda error: self._unreachable([id], error))

    def _was_answered(self, id: str, answer: Any) -> None:
        if answer is None:
            self._look_at([id])
        else:
            self._settle(id, answer)

    def _settle(self, id: str, answer: Any) -> None:
        asked = self._take(id)
        if asked is None:
            return
        if answer == _MOVED:
            asked.moved()
        else:
            asked.reply(msgspec.convert(answer, type=_Given))

    def _look(self, id: str, until: float) -> None:
        """No answer yet: its notice may be lost, or the host that was asked is gone."""
        asked = self._asked[id]
        if monotonic() < until:
            asked.timer = self._loop.call_later(_LOOK_SECONDS, self._look, id, until)
            self._look_at([id])
            return
        self._take(id)
        host = self._peers.others.get(asked.life) or f"life {asked.life}"
        error = f"the session is at host {host}, which did not answer within {LIMIT_SECONDS:g} s"
        hint = "send it again with the same key: a host that is gone is replaced when its lease ends"
        asked.reply(wire.Refused(error, hint, RETRY_SECONDS, "unavailable"))

    def _look_at(self, ids: Collection[str]) -> None:
        self._rows.stands(ids, self._looked, lambda error: self._unreachable(ids, error))

    def _looked(self, stands: Mapping[str, Stand]) -> None:
        for id, stand in stands.items():
            if stand.answer is not None:
                self._settle(id, msgspec.json.decode(stand.answer))
            elif stand.is_gone and (asked := self._take(id)) is not None:
                asked.moved()

    def _unreachable(self, ids: Collection[str], error: JournalError | WireError) -> None:
        for asked in filter(None, map(self._take, ids)):
            asked.reply(wire.Refused(error.fault, error.hint, RETRY_SECONDS, "unavailable"))

    def _take(self, id: str) -> _Pending | None:
        """The request is over: its row is deleted."""
        asked = self._asked.pop(id, None)
        if asked is None:
            return None
        if asked.timer is not None:
            asked.timer.cancel()
        self._over.append(id)
        if self._forgetting is None:
            self._forgetting = self._loop.call_later(_FORGET_SECONDS, self._forget)
        return asked

    def _forget(self) -> None:
        self._forgetting = None
        over, self._over = self._over, []
        self._rows.forget(over)

    # --- the answerer -----------------------------------------------------------------------------------

    def _was_asked(self, at: float, id: str, life: int, body: Any) -> None:
        if body is not None:
            self._carry_out(at, id, life, body)
        else:
            self._rows.body(id, lambda body: self._carry_out(at, id, life, msgspec.json.decode(body)))

    def _connected(self) -> None:
        """Requests and answers may have been missed."""
        if self._asked:
            self._look_at(list(self._asked))
        unsent, self._unsent = self._unsent, []
        for answer in unsent:
            self._answer(*answer)
        self._rows.unanswered(self._missed)

    def _missed(self, found: Sequence[Unanswered]) -> None:
        for each in found:
            self._carry_out(each.asked_at, each.id, each.from_life, msgspec.json.decode(each.body))

    def _carry_out(self, at: float, id: str, life: int, body: Any) -> None:
        now = self._notices.server_now
        if id in self._taken or now is None or now - at > LIMIT_SECONDS:
            return
        self._taken[id] = None
        if len(self._taken) > _TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        try:
            request = msgspec.convert(body, type=_Body)
        except msgspec.ValidationError:
            hint = "install the same version on all hosts"
            fault = "the host of the session does not know this request"
            self._answer(id, life, wire.Refused(fault, hint, code="unavailable"))
            return
        self._serve(
            request, lambda answer: self._answer(id, life, answer), lambda: self._answer(id, life, _MOVED)
        )

    def _answer(self, id: str, life: int, answer: Any) -> None:
        body = msgspec.json.encode(answer).decode()
        self._rows.answer(id, life, body, lambda error: self._unsent.append((id, life, answer)))


def _not_served(fault: Fault, request: Any, reply: Reply, moved: Callable[[], None]) -> None:
    reply(wire.Refused(fault.error, fault.hint, code="internal"))
