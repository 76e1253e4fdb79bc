"""The log: one line per decision, verbs in the past, logfmt or JSON; never a message's text, never a key."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TextIO

from supervisor.clock import Clock
from supervisor.core.effects import Decision, KillWorker, StartWorker
from supervisor.core.records import Record

# Event fields that are ids and numbers; every other field may contain text of a person.
_SAFE_FIELDS = (
    "message", "turn", "attempt", "call", "worker", "pid", "kind", "busy", "ok", "ms", "exit", "signal",
    "waiting",
)  # fmt: skip
_NEEDS_QUOTES = re.compile(r'[\s"=\\]')
# Priorities of syslog; a verb that is not listed has priority "info".
_INFORMATION = 6
_PRIORITIES = {
    "journal.failed": 3,
    "journal.waits": 4,
    "journal.kept": 4,
    "settings.refused": 4,
    "folder.replaced": 3,
    "turn.failed": 4,
    "attempt.lost": 4,
    "attempt.stuck": 4,
    "transcript.failed": 4,
}


def _logfmt() -> str:
    return "logfmt"


class Log:
    """Writes lines; the caller's stream decides where they go (terminal, file, journald).

    journald has its own clock and expects a priority, so lines for it begin with one instead of the time.
    """

    def __init__(self, clock: Clock, stream: TextIO = sys.stderr, form: Callable[[], str] = _logfmt) -> None:
        self._clock = clock
        self._stream = stream
        self._form = form
        self._is_journald = _is_journald(stream)
        # Called after each write; bounds the log file.
        self.wrote: Callable[[], None] = lambda: None

    def write(self, verb: str, **fields: Any) -> None:
        self._put([self._line(verb, fields)])

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Log the records and process effects of a batch of decisions in one write: a write is costly."""
        self._put([line for decision in decisions for line in self._lines(decision)])

    def _put(self, lines: list[str]) -> None:
        if not lines:
            return
        # A failed write, as on a full disk, must not stop the service.
        with suppress(OSError):
            print("\n".join(lines), file=self._stream, flush=True)
            self.wrote()

    def _line(self, verb: str, fields: dict[str, Any]) -> str:
        line = self._json(verb, fields) if self._form() == "json" else self._logfmt(verb, fields)
        return f"<{_PRIORITIES.get(verb, _INFORMATION)}>{line}" if self._is_journald else line

    def _logfmt(self, verb: str, fields: dict[str, Any]) -> str:
        pairs = [f"{name}={_value(value)}" for name, value in fields.items()]
        return " ".join([verb, *pairs] if self._is_journald else [f"{self._clock.now():.3f}", verb, *pairs])

    def _json(self, verb: str, fields: dict[str, Any]) -> str:
        at = {} if self._is_journald else {"at": round(self._clock.now(), 3)}
        return json.dumps(at | {"event": verb} | fields, default=str)

    def _lines(self, decision: Decision) -> Iterator[str]:
        for record in decision.records:
            if record.type:
                yield self._line(record.type, {"session": record.session, "seq": record.seq} | _safe(record))
        for effect in decision.effects:
            if isinstance(effect, StartWorker | KillWorker):
                seat = {"worker": effect.seat, "incarnation": effect.incarnation}
                if isinstance(effect, StartWorker):
                    yield self._line("worker.started", seat | {"agent": effect.agent})
                else:
                    yield self._line(
                        "worker.killed", seat | {"reason": effect.why.kind.value, "why": str(effect.why)}
                    )


def _safe(record: Record) -> dict[str, Any]:
    fields = record.fields()
    return {name: fields[name] for name in _SAFE_FIELDS if name in fields}


def _value(value: object) -> str:
    """Escape control, direction and invisible characters: a log is read in terminals."""
    text = str(value)
    if not text.isprintable():
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False) if _NEEDS_QUOTES.search(text) or not text else text


def _is_journald(stream: TextIO) -> bool:
    """systemd passes the device and inode of its journal socket to a service that is connected to it."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
