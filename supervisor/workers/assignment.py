"""Assignment: from the decision that a worker gets a turn to the frame; the workspace is bound in between.

A worker is bound to its session before its first turn: the session's workspace is made and mounted in the
worker's cell, which takes a moment. Frames for a worker that is being bound wait here, in their order. A
worker that cannot be bound is reported as unreachable, so that another one gets its turn.

Frames are sent from here, at once or later, so the containment boundary of `turn` is here (containment.py):
an exception while a turn is assigned fails that turn, and the worker stays ready.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ipc.errors import PlaceError
from supervisor.containment import Containment, Fault
from supervisor.core.effects import AssignTurn, BindWorker, SteerTurn
from supervisor.core.events import Event, Failed, WorkerReady, WorkerUnreachable
from supervisor.core.state import Who

# Mounts a workspace in the cell of an incarnation, then reports the fault, "" if there is none.
Bind = Callable[[int, Path, Callable[[str], None]], None]


class Workspaces(Protocol):
    def make(self, session: str) -> Path: ...


class Switchboard(Protocol):
    def assign(self, effect: AssignTurn) -> None: ...
    def steer(self, effect: SteerTurn) -> None: ...


class Assignment:
    """`post` gets the faults of a worker or a turn."""

    def __init__(
        self,
        workspaces: Workspaces,
        bind: Bind,
        switchboard: Switchboard,
        post: Callable[[Event], None],
        contain: Containment,
    ) -> None:
        self._workspaces = workspaces
        self._put = bind
        self._post = post
        self._bind = contain.around("worker", self._make_and_put, self._not_bound)
        self._send_assign = contain.around("turn", switchboard.assign, self._not_assigned)
        self._send_steer = contain.around("turn", switchboard.steer, _not_steered)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Who, list[Callable[[], None]]] = {}  # of workers that are being bound

    def bind(self, effect: BindWorker) -> None:
        self._waiting[effect.who] = []
        self._bind(effect)

    def _make_and_put(self, effect: BindWorker) -> None:
        who = effect.who
        try:
            workspace = self._workspaces.make(effect.session)
        except PlaceError as error:
            self._bound(who, error.fault)
        else:
            self._put(who.incarnation, workspace, lambda fault: self._bound(who, fault))

    def _not_bound(self, fault: Fault, effect: BindWorker) -> None:
        self._bound(effect.who, fault.error)

    def _bound(self, who: Who, fault: str) -> None:
        if fault:
            self._post(WorkerUnreachable(who, f"it cannot have its session's workspace: {fault}"))
            # Deferred: the frames that were decided together with the binding are dropped, too.
            self._loop.call_soon(self._waiting.pop, who, None)
            return
        for send in self._waiting.pop(who, ()):
            send()

    def assign(self, effect: AssignTurn) -> None:
        self._when_bound(effect.who, lambda: self._send_assign(effect))

    def steer(self, effect: SteerTurn) -> None:
        self._when_bound(effect.who, lambda: self._send_steer(effect))

    def _when_bound(self, who: Who, send: Callable[[], None]) -> None:
        waiting = self._waiting.get(who)
        if waiting is None:
            send()
        else:
            waiting.append(send)

    def _not_assigned(self, fault: Fault, effect: AssignTurn) -> None:
        """The frame was not sent: the worker is as ready as before, and the turn fails with a reason."""
        error = f"it could not be given to a worker: {fault.error}"
        self._post(Failed(effect.who, effect.turn, effect.attempt, error, fault.hint, again=False))
        self._post(WorkerReady(effect.who))


def _not_steered(fault: Fault, effect: SteerTurn) -> None:
    """A message that is not offered to the running turn waits for the next one."""
