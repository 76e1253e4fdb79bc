"""Statements that PostgreSQL needs in another form than SQLite (dialect.py), by the text of the original.

Each does the same as its original. Three reasons make a difference:

- A batch is sent without waiting for a result (batch_writer.py), so what an earlier statement would return is
  selected where it is needed, and the messages of a turn are taken by one statement.
- No row is written by all hosts: tallies and days have a row per life, and are summed when they are read.
- A function of SQLite has no counterpart: dates, the elements of a list.
"""

from supervisor.core.records import Record, SessionGiven
from supervisor.journal import reader, statements, sums
from supervisor.journal.statements import EachMessage, Statement, Sweep, Write

# The newest message of those that a turn takes.
_CONTENT_AT = "(SELECT max(at) FROM messages WHERE id = ANY(:message_ids::text[]))"
_DAY = "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
_ENDED_ON = _DAY.format("to_timestamp(:at)")
_TODAY = _DAY.format("now()")
_COUNTED = "UPDATE tallies SET number = number + 1 WHERE life = :life AND what = '{}'"

_WRITES = {
    (EachMessage, "message.taken"): """
        UPDATE messages SET state = 'taken', turn = :turn
        WHERE id = ANY(:message_ids::text[]) AND session = :session AND state = 'waiting'""",
    (Write, "turn.opened"): f"""
        INSERT INTO turns (id, session, number, agent, state, messages, opened_at, content_at)
        VALUES (:turn, :session, :number, :agent, 'queued', :messages_json, :at, {_CONTENT_AT})""",
    (EachMessage, "turn.joined"): f"""
        UPDATE turns SET messages = (messages::jsonb || to_jsonb(:message_ids::text[]))::text,
            content_at = {_CONTENT_AT}
        WHERE session = :session AND number = :turn_number AND id = :turn
            AND state = 'queued' AND attempts = 0""",
}
_SWEEPS = {
    statements.SESSION_COUNTED.sql: _COUNTED.format("sessions"),
    statements.PAST_TURNS.sql: """
        INSERT INTO past_turns (session, number, body)
        SELECT :session, listed.number, listed.body
        FROM unnest(:turn_bodies::text[]) WITH ORDINALITY AS listed(body, number)""",
    sums.USED_ON_DAY: f"""
        INSERT INTO days (day, life, tokens, cost)
        SELECT {_ENDED_ON}, :life, :input_tokens + :output_tokens, :cost
        WHERE :input_tokens + :output_tokens > 0
        ON CONFLICT (day, life)
            DO UPDATE SET tokens = days.tokens + excluded.tokens, cost = days.cost + excluded.cost""",
    **{sums.COUNTED.format(what): _COUNTED.format(what) for what in ("done", "interrupted", "failed")},
}
# Records that are made only where several hosts share the journal.
OF_HOSTS: dict[type[Record], tuple[Statement, ...]] = {
    SessionGiven: (
        Write(
            "session.given",
            """UPDATE owners SET life = :to_life, claim = 0, taken = false
               WHERE session = :session AND life = :life""",
        ),
    ),
}
READS = {
    reader.COUNTS: """
        SELECT what, sum(number) AS number FROM tallies GROUP BY what
        UNION ALL SELECT state, count(*) FROM turns
            WHERE state IN ('queued', 'running', 'asking') GROUP BY state
        UNION ALL SELECT 'waiting', count(*) FROM messages WHERE state IN ('transcribing', 'waiting')
        UNION ALL SELECT 'held', count(*) FROM sessions WHERE held > 0""",
    sums.USED: f"""
        SELECT 'turn' AS scope, coalesce(sum(input_tokens + output_tokens), 0) AS tokens,
            coalesce(sum(cost), 0) AS cost, {_TODAY} AS day FROM attempts WHERE turn = ?
        UNION ALL SELECT 'session', tokens, cost, '' FROM sessions WHERE name = ?
        UNION ALL SELECT 'day', coalesce(sum(tokens), 0), coalesce(sum(cost), 0), ''
            FROM days WHERE day = {_TODAY}""",
    sums.APPROVED: """
        SELECT 1 FROM questions
        WHERE md5(text) = md5(?1) AND text = ?1 AND (?2 IS NULL OR session = ?2)
            AND kind = 'approve' AND state = 'answered' AND answer = 'yes' LIMIT 1""",
}


def own(statement: Statement) -> Statement:
    """Return the statement in the form that PostgreSQL needs, with its parameters as SQLite has them."""
    if isinstance(statement, Sweep):
        return Sweep(_SWEEPS.get(statement.sql, statement.sql))
    sql = _WRITES.get((type(statement), statement.name), statement.sql)
    # It takes all messages of the record at once.
    is_each = isinstance(statement, EachMessage) and statement.name == "message.taken"
    return EachMessage(statement.name, sql) if is_each else Write(statement.name, sql)
