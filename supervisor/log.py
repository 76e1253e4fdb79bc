"""The log: one logfmt line per decision, verbs in the past; never a message's text, never a key."""

import sys
from contextlib import suppress
from typing import Any, TextIO

from supervisor.clock import Clock
from supervisor.core.effects import Decision, KillWorker, StartWorker
from supervisor.core.records import Record

# Fields of a feed event that are ids and numbers; everything else may hold somebody's words.
_SAFE_FIELDS = ("message", "turn", "attempt", "call", "worker", "pid", "kind", "busy", "ok", "ms", "waiting")


class Log:
    """Writes lines; where they go (terminal, file, journald) is the caller's choice of stream."""

    def __init__(self, clock: Clock, stream: TextIO = sys.stderr) -> None:
        self._clock = clock
        self._stream = stream

    def write(self, verb: str, **fields: Any) -> None:
        pairs = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
        # A log that cannot be written, as on a full disk, must not keep anything from being done.
        with suppress(OSError):
            print(f"{self._clock.now():.3f} {verb} {pairs}".rstrip(), file=self._stream, flush=True)

    def decided(self, decision: Decision) -> None:
        """Tell what a decision remembered and did to processes."""
        for record in decision.records:
            if record.type:
                self.write(record.type, session=record.session, seq=record.seq, **_safe(record))
        for effect in decision.effects:
            if isinstance(effect, StartWorker):
                self.write("worker.started", worker=effect.seat, incarnation=effect.incarnation)
            elif isinstance(effect, KillWorker):
                self.write(
                    "worker.killed", worker=effect.seat, incarnation=effect.incarnation, why=effect.why
                )


def _safe(record: Record) -> dict[str, Any]:
    fields = record.fields()
    return {name: fields[name] for name in _SAFE_FIELDS if name in fields}


def _value(value: object) -> str:
    text = str(value)
    return f'"{text}"' if " " in text or not text else text
