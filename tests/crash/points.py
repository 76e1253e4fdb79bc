"""Every point at which a supervisor can be made to die, found by looking at the code, not by listing it."""

import inspect
from functools import cache
from typing import get_args

from supervisor import performer
from supervisor.core import effects
from supervisor.core.records import Record
from supervisor.journal.fused_insert import BEGUN, EVENTS_BEGUN, FIRST_BEGUN, NEXT_BEGUN
from supervisor.journal.migrate import steps
from supervisor.journal.statements import EVENT, FIRST_TOLD, NEXT_TOLD, STATEMENTS, Statement, Sweep

# Its log is for people, and actions are its own. What the engine asks of the journal is seen closer,
# statement by statement.
_NO_ROOMS = (performer.DecisionLog, performer.Actions)
# The rooms that the performer acts on: every other protocol that it declares.
ROOMS = tuple(
    each
    for each in vars(performer).values()
    if getattr(each, "_is_protocol", False) and each.__module__ == performer.__name__
    if each not in _NO_ROOMS
)
# By which act an effect is performed.
ACT_OF = {
    effects.StartWorker: "Processes.start",
    effects.WarmRuntime: "Processes.want",
    effects.KillWorker: "Processes.kill",
    effects.EndGrace: "Cancellation.end_grace",
    effects.BindWorker: "Assignment.bind",
    effects.AssignTurn: "Assignment.assign",
    effects.SteerTurn: "Assignment.steer",
    effects.AnswerTurn: "Assignment.answer",
    effects.Transcribe: "Transcription.transcribe",
    effects.ForgetClip: "Transcription.forget",
}
BEGIN, COMMIT, CHECKPOINT, LIFE = "transaction.begin", "transaction.commit", "checkpoint", "life.begin"
WORDS_SHOWN, READY_TOLD = "Subscriptions.delta", "Notifier.ready"
_WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "VACUUM")


@cache
def statement_points() -> dict[tuple[type[Record] | None, str], str]:
    """(record, SQL) -> name. What all told records share has no record of its own."""
    found: dict[tuple[type[Record] | None, str], str] = {
        (None, EVENT): "told: event",
        (None, EVENTS_BEGUN): "begun: events",
    }
    begun: tuple[Statement, ...] = (*FIRST_BEGUN, *NEXT_BEGUN, *BEGUN)
    for index, statement in enumerate(begun):
        found[None, statement.sql] = f"begun: {_name(statement, index)}"
    shared: tuple[Statement, ...] = (*FIRST_TOLD, *NEXT_TOLD)
    for index, statement in enumerate(shared):
        found[None, statement.sql] = f"told: {_name(statement, index)}"
    for record, statements in STATEMENTS.items():
        for index, statement in enumerate(statements):
            found[record, statement.sql] = f"{record.__name__}: {_name(statement, index)}"
    return found


def _name(statement: Statement, index: int) -> str:
    return f"sweep {index}" if isinstance(statement, Sweep) else statement.name


def room_points() -> list[str]:
    return [f"{room.__name__}.{act}" for room in ROOMS for act in acts_of(room)]


def acts_of(room: type) -> list[str]:
    """The methods a protocol asks for."""
    return [name for name in vars(room) if not name.startswith("_") and inspect.isfunction(vars(room)[name])]


def answer_points() -> list[str]:
    return [answer_point(kind) for kind in get_args(effects.Answer)]


def answer_point(kind: type) -> str:
    return f"answer: {kind.__name__}"


def migration_points() -> list[str]:
    return [migration_point(number) for number, _ in steps()]


def migration_point(number: int) -> str:
    return f"migration: {number}"


def every_point() -> list[str]:
    return [
        *migration_points(),
        LIFE,
        BEGIN,
        *statement_points().values(),
        COMMIT,
        CHECKPOINT,
        *answer_points(),
        *room_points(),
        WORDS_SHOWN,
        READY_TOLD,
    ]


def sides(point: str) -> tuple[str, ...]:
    """The sides of a point on which a death leaves something of its own.

    After a statement of a transaction is before the next one, or before the commit; nothing is durable yet.
    """
    return ("before",) if point in statement_points().values() else ("before", "after")


def point_of(sql: str, record: type[Record] | None) -> str | None:
    """Which point a statement is; None when it changes nothing. A change without a name is an error."""
    text = sql.strip()
    if text.startswith("BEGIN IMMEDIATE;"):
        number = next(number for number, script in steps() if script in sql)
        return migration_point(number)
    plain = {"BEGIN IMMEDIATE": BEGIN, "COMMIT": COMMIT, "UPDATE life SET epoch = epoch + 1": LIFE}
    if text in plain:
        return plain[text]
    if text.startswith("PRAGMA wal_checkpoint"):
        return CHECKPOINT
    points = statement_points()
    found = points.get((record, sql)) or points.get((None, sql))
    if found is None and text.upper().startswith(_WRITING):
        raise LookupError(f"a write that has no point: {sql}")
    return found
