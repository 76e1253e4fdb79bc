"""One service as a state machine: waiting, starting, warming, ready, resting or failed, stopped.

A service waits while files or packages that it needs are missing: no process is made, and the disk is checked
every second. A process that ends is followed by another after a pause; after several failures in a row, or
when the service reports that it cannot work, its state is failed, and it is still retried.

Frames count only from the identity of the running process, and not after its end was decided.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ipc.errors import PlaceError
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from supervisor.clock import monotonic
from supervisor.handoff.carried_services import HandedService
from supervisor.host.banner import own_version
from supervisor.services.child import Child
from supervisor.services.service_spec import ServiceSpec

# Interval of checks for missing files and packages.
_NEEDED_SECONDS = 1.0
# Checks per silence limit; they bound how late a silence is noticed.
_LOOKS_PER_SILENCE = 4


@dataclass(frozen=True, slots=True)
class ServiceChanged:
    """A service has a new state. What that means for turns is for those who use the service."""

    service: str
    state: str
    address: str
    detail: str
    hint: str


@dataclass(frozen=True)
class _End:
    """The reason to end a process, decided before it is dead."""

    detail: str
    hint: str
    # Failed when the service reported that it cannot work; else the next try may succeed.
    state: Literal["resting", "failed"] = "resting"


class Service:
    """One service and at most one process of it."""

    def __init__(
        self,
        spec: ServiceSpec,
        endpoint: str,
        log: Path,
        report: Callable[[ServiceChanged], None],
        check: Callable[[], None],
    ) -> None:
        """`check` raises PlaceError when the folder of the log was replaced."""
        self._spec = spec
        self._endpoint = endpoint
        self._log = log
        self._report = report
        self._check = check
        self._loop = asyncio.get_running_loop()
        self._changed = ServiceChanged(spec.name, "stopped", "", "", "")
        self._child: Child | None = None
        self._end: _End | None = None
        # Why the last process ended; cleared when a later one is ready.
        self._last_end: _End | None = None
        # The one timer of this service: start deadline, next check, or next start.
        self._timer: asyncio.TimerHandle | None = None
        self._incarnation = 0
        self._failures = 0
        self._started_at = 0.0
        self._ready_at: float | None = None
        # When it first failed since it was last ready; further failures belong to the same trouble.
        self._down_at: float | None = None
        self._heard_at = 0.0
        self._look_due_at = 0.0
        self._closing = False
        self.identity = ""

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def alive(self) -> bool:
        return self._child is not None

    def start(self) -> None:
        """Make the process, or wait for what it needs."""
        missing = next((needed for needed in self._spec.needed if not needed.is_there), None)
        if missing is not None:
            self._change("waiting", missing.fault, missing.hint)
            self._wait(_NEEDED_SECONDS, self.start)
            return
        self._incarnation += 1
        self.identity = secrets.token_hex(16)
        self._end = None
        self._ready_at = None
        self._started_at = monotonic()
        self._change("starting")
        orders = ServiceStart(
            name=self._spec.name,
            incarnation=self._incarnation,
            endpoint=self._endpoint,
            identity=self.identity,
            options=self._spec.options,
            parent_pid=os.getpid(),
        )
        try:
            self._check()
            self._child = Child.start(
                self._spec.module, orders, self._log, self._spec.environment, self._ended
            )
        except PlaceError as error:
            self._rest(_End(error.fault, error.hint))
            return
        except OSError as error:
            self._rest(
                _End(f"no process could be made: {error.strerror}", "check free memory and process limits")
            )
            return
        self._wait(self._spec.start_deadline_seconds, self._start_overdue)

    def take_over(self, handed: HandedService) -> None:
        """Continue with a process of an earlier image; replace one with other options, or an outdated one."""
        self._incarnation, self.identity = handed.incarnation, handed.identity
        self._started_at = handed.started_at
        self._ready_at = self._heard_at = monotonic()
        self._child = Child.take_over(handed, self._log, self._ended)
        is_current = self._spec.outlives_version or handed.version == own_version()
        if handed.options == self._spec.options and is_current:
            self._change("ready", handed.detail, "", handed.address)
            self._look_later()
        else:
            self.end("its settings or its version have changed", "it starts again with the new ones")

    def hand_over(self) -> HandedService | None:
        """Hand over to the next image of the supervisor; None unless it is ready."""
        if self._child is None or self._changed.state != "ready":
            return None
        self._stop_waiting()
        child, self._child = self._child, None
        return HandedService(
            self._spec.name,
            self._spec.options,
            self._incarnation,
            self.identity,
            child.pid,
            child.hand_over(),
            self._started_at,
            self._changed.detail,
            self._changed.address,
            own_version(),
        )

    def received(self, message: ServiceState | Beat) -> None:
        """Handle a frame of the running process."""
        self._heard_at = monotonic()
        if self._end is not None or not isinstance(message, ServiceState):
            return
        if message.state == "failed":
            self._kill_for(_End(message.detail, message.hint, "failed"))
        elif message.state == "ready":
            self._ready_at = self._heard_at
            self._down_at = None
            self._last_end = None
            self._change("ready", message.detail, message.hint, message.address)
            self._look_later()
        elif self._ready_at is None:
            self._change(message.state, message.detail, message.hint)

    def end(self, detail: str, hint: str) -> None:
        """Kill the process for a reason; another one follows."""
        self._kill_for(_End(detail, hint))

    def renew(self, spec: ServiceSpec) -> None:
        """Replace the process by one with another spec; this is no failure."""
        self._spec = spec
        self._failures = 0
        self._closing = False
        if self._child is not None:
            self.end("its settings have changed", "")
        else:
            self._stop_waiting()
            self.start()

    def ask_to_end(self) -> None:
        """Stop for good: no start follows."""
        self._closing = True
        self._stop_waiting()
        if self._child is not None:
            self._child.ask_to_end()
        else:
            self._change("stopped")

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def row(self) -> dict[str, Any]:
        """Return the state; during retries the last fault stays visible."""
        child, changed, last = self._child, self._changed, self._last_end
        again = last if changed.state in ("starting", "warming") else None
        return {
            "service": self._spec.name,
            "state": changed.state,
            "pid": child.pid if child else None,
            "address": changed.address,
            "detail": f"tries again; last time: {again.detail}" if again else changed.detail,
            "hint": again.hint if again else changed.hint,
            "restarts": max(0, self._incarnation - 1),
            "age_seconds": round(monotonic() - self._started_at, 3) if child else None,
            "down_seconds": None if self._down_at is None else round(monotonic() - self._down_at, 3),
        }

    def _kill_for(self, end: _End) -> None:
        """The first reason stands."""
        if self._child is not None and self._end is None:
            self._end = end
            self._child.kill()

    def _start_overdue(self) -> None:
        limit = self._spec.start_deadline_seconds
        self.end(f"it was not ready within {limit:g} s", f"see {self._log}")

    def _look_later(self) -> None:
        pause = self._spec.silence_seconds / _LOOKS_PER_SILENCE
        self._look_due_at = monotonic() + pause
        self._wait(pause, self._look)

    def _look(self) -> None:
        now = monotonic()
        limit = self._spec.silence_seconds
        if now - self._look_due_at > limit / _LOOKS_PER_SILENCE:
            # This process itself stalled: frames may be waiting unread, so silence is no proof.
            self._heard_at = now
        if self._child is not None:
            self._child.bound_log()
        if now - self._heard_at > limit:
            self.end(f"it sent nothing for {limit:g} s", f"see {self._log}")
        else:
            self._look_later()

    def _ended(self, status: int) -> None:
        assert self._child is not None
        last_words = self._child.last_words()
        self._child = None
        self.identity = ""
        self._stop_waiting()
        if self._closing:
            self._change("stopped")
            return
        end = self._end or _End(_exit_sentence(status, last_words), f"see {self._log}")
        self._rest(end)

    def _rest(self, end: _End) -> None:
        policy = self._spec.restart
        self._last_end = end
        if self._ready_at is not None and monotonic() - self._ready_at >= policy.steady_seconds:
            self._failures = 0
        self._failures += 1
        self._down_at = self._down_at or monotonic()
        pause = policy.rest_seconds(self._failures)
        state = "failed" if self._failures >= policy.failed_after else end.state
        self._change(state, f"{end.detail}; starts again after {pause:g} s", end.hint)
        self._wait(pause, self.start)

    def _change(self, state: str, detail: str = "", hint: str = "", address: str = "") -> None:
        changed = ServiceChanged(self._spec.name, state, address, detail, hint)
        if changed != self._changed:
            self._changed = changed
            self._report(changed)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_waiting()
        self._timer = self._loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _exit_sentence(status: int, last_words: str) -> str:
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return f"it {how}" + (f": {last_words}" if last_words else "")
