"""Runs a trial: a turn in the session of `ipc/isolation.py`, watched to its end, and its results."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from hermesctl.ctrlc import CtrlC
from hermesctl.doctor.baits import laid
from hermesctl.doctor.cell_look import look
from hermesctl.errors import CommandError
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.render import aside
from hermesctl.sending import Sending
from hermesctl.show_rows import read
from ipc.isolation import ATTACKS, SESSIONS, Result, Targets, Trial
from ipc.messages import Accepted, Delta, Event, Noted, Show, Submit
from ipc.places import Places

# Prefix in `status` of a cell that is not available.
_NO_CELL = "none"


@dataclass(frozen=True)
class Found:
    """The results of a trial, and the kind of its cell."""

    turn: str
    level: str
    cell: str
    network: str
    results: tuple[Result, ...]


def run(places: Places, agent: str) -> Found:
    """Runs the attacks in a cell of that agent; raises CommandError with the reason when it cannot."""
    (status,) = read(places, Show("status"))
    if str(status["cell"]).startswith(_NO_CELL):
        raise CommandError(f"no cell can be tried: {status['cell']}", "hermesctl doctor", Exit.REFUSED)
    workers, services = read(places, Show("workers")), read(places, Show("services"))
    with laid(places, int(status["pid"]), workers, services) as targets:
        events = _TrialEvents(int(status["pid"]))
        _follow(places, f"{SESSIONS}{agent}", targets, events)
    trial = _trial(events.text)
    results = in_order([*trial.results, *events.looks])
    return Found(events.turn, events.level, trial.cell, trial.network, results)


def in_order(found: Iterable[Result]) -> tuple[Result, ...]:
    """One result for each attack. A missing one counts as broken."""
    by_name = {result.name: result for result in found}
    missing = "the trial says nothing of it"
    return tuple(by_name.get(attack.name) or Result(attack.name, "broken", missing) for attack in ATTACKS)


class _TrialEvents:
    """Collects the events of the trial's turn, and examines its worker once that is known."""

    def __init__(self, supervisor: int) -> None:
        self._supervisor = supervisor
        self.turn = self.level = self.text = ""
        self.looks: list[Result] = []

    def show(self, item: Event | Delta | Noted) -> None:
        if not isinstance(item, Event):
            return
        if item.type == "attempt.opened":
            self.turn, self.level = item.fields["turn"], item.fields["level"]
            self.looks = look(item.fields["pid"], self._supervisor)
        elif item.type == "turn.done":
            self.text = str(item.fields.get("text") or "")

    def remark(self, text: str) -> None:
        aside(text)

    def join_at(self, offset: int) -> None:
        """Does nothing: only the whole answer counts."""


def _follow(places: Places, session: str, targets: Targets, events: _TrialEvents) -> None:
    text = msgspec.json.encode(targets).decode()
    request = Submit(session, text, f"hermesctl-{os.urandom(12).hex()}", "queue")
    with CtrlC() as ctrl_c:
        stream = EventStream(places, session, None, ctrl_c.wake)
        try:
            accepted = stream.client.ask(request, Accepted)
            ending = Sending(stream, session, accepted, events, ctrl_c).follow_to_the_end()
        finally:
            stream.close()
    if ending is not Exit.DONE:
        raise CommandError("the trial was interrupted", "run it again", ending)


def _trial(text: str) -> Trial:
    try:
        return msgspec.json.decode(text, type=Trial)
    except msgspec.DecodeError:
        hint = "restart the service, if it is of another version"
        raise CommandError("the trial's answer cannot be read", hint, Exit.REFUSED) from None
