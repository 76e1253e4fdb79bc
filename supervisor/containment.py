"""Containment: an exception costs what was being served, and nothing else.

One loop serves every client, worker and service, so an unexpected exception must not end it: an odd request
would end every session. But continuing after an exception is only right where it is known what was being
served and how to end that. These are the boundaries, and no other place catches all exceptions:

| place | work | what ends |
| --- | --- | --- |
| `request` | one request of a client, one answer to it | the request: it is answered with Refused |
| `worker` | one frame of a worker; watching one process | that worker: it is killed with a reason |
| `service` | one frame of a service | that service's process |
| `follower` | one event or delta for one subscriber | that subscription |
| `turn` | assigning one turn, or one message, to a worker | the turn: it fails |
| `clip` | sending one clip to the STT service | the clip |
| `schedule` | scheduled work of the supervisor | this run of it; it is repeated |
| `loop` | any other callback of the event loop | the callback |

Not contained is the work of the engine itself: deciding, committing, starting and killing (`vital`), and a
task whose failure no boundary covers, such as one that watches a worker die. Then memory may be ahead of the
disk or a process may be unknown: the supervisor ends, and the next epoch loads the committed state.

A caught exception is logged with its trace but without its message, which may quote a person, and counted by
its place.
"""

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, get_args

from supervisor.host import threads

Place = Literal["request", "worker", "service", "follower", "turn", "clip", "schedule", "loop"]
PLACES: tuple[Place, ...] = get_args(Place)

_P = ParamSpec("_P")
_Done = TypeVar("_Done")
_Failed = TypeVar("_Failed")

# A defect that occurs a thousand times a second must not fill the disk; the counter has all of them.
_LOGGED_PER_MINUTE = 20
_FRAMES_LOGGED = 12


_UNFORESEEN_HINT = "`hermesctl logs` shows where; please report it"


@dataclass(frozen=True, slots=True)
class Fault:
    """The public part of an exception: a fault and a hint."""

    error: str
    hint: str


class Log(Protocol):
    def write(self, verb: str, **fields: Any) -> None: ...


class Containment:
    """`count` gets the place of every exception that is caught here."""

    def __init__(self, log: Log, now: Callable[[], float], count: Callable[[str], None]) -> None:
        self._log = log
        self._now = now
        self._count = count
        self._minute = 0
        self._logged = 0

    def around(
        self,
        place: Place,
        serve: Callable[_P, _Done],
        failed: Callable[Concatenate[Fault, _P], _Failed],
    ) -> Callable[_P, _Done | _Failed]:
        """Return `serve`; an exception calls `failed` with the same arguments, which ends what was served."""

        def guarded(*arguments: _P.args, **named: _P.kwargs) -> _Done | _Failed:
            try:
                return serve(*arguments, **named)
            except Exception as error:
                fault = self.caught(place, error)
            return failed(fault, *arguments, **named)

        return guarded

    async def vital(
        self, work: Callable[[], Awaitable[None]], fatal: Callable[[BaseException], None]
    ) -> None:
        """Call and await `work`; an exception ends the process by `fatal`."""
        try:
            await work()
        except Exception as error:
            self._write("engine.failed", error)
            fatal(error)

    def task(
        self, place: Place, work: Coroutine[Any, Any, None], failed: Callable[[Fault], None]
    ) -> "asyncio.Task[None]":
        """Run `work`; its exception is caught as soon as it ends, not when it is awaited."""

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                failed(self.caught(place, error))

        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(ended)
        return task

    def thread(
        self,
        place: Place,
        work: Callable[[], _Done],
        then: Callable[[_Done], None],
        failed: Callable[[Fault], None],
    ) -> None:
        """Run `work` in a thread of its own; `then` or `failed` gets the outcome in this loop.

        It is a daemon thread: work that does not return must not keep the process from ending.
        """
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                outcome = work()
            except Exception as error:
                back(broke, error)
            else:
                back(came, outcome)

        def back(told: Callable[[_Failed], None], outcome: _Failed) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended meanwhile
                loop.call_soon_threadsafe(told, outcome)

        def broke(error: Exception) -> None:
            failed(self.caught(place, error))

        came = self.around(place, then, lambda fault, outcome: failed(fault))

        threads.start(run, place)

    def caught(self, place: Place, error: BaseException | None) -> Fault:
        """Count and log an exception, and return what may be shown of it."""
        self._count(place)
        minute = int(self._now() // 60)
        if minute != self._minute:
            self._minute, self._logged = minute, 0
        self._logged += 1
        if self._logged <= _LOGGED_PER_MINUTE:
            self._write("contained", error, place=place)
        # Our own errors have both sentences; the message of any other may quote a person.
        told = getattr(error, "fault", ""), getattr(error, "hint", "")
        return Fault(*told) if all(told) else Fault(f"an internal error ({_kind(error)})", _UNFORESEEN_HINT)

    def _write(self, verb: str, error: BaseException | None, **fields: str) -> None:
        self._log.write(verb, **fields, error=_kind(error), trace=trace_of(error))


def _kind(error: BaseException | None) -> str:
    return type(error).__name__ if error is not None else "unknown"


def trace_of(error: BaseException | None) -> str:
    """Return where it happened, the innermost call first; no messages and no values."""
    if error is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_LOGGED:]
    return " < ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in reversed(frames))


def nothing(*arguments: object, **named: object) -> None:
    """For work that leaves nothing to be ended."""
