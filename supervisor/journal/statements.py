"""The SQL of every record. A write names in its WHERE the state it was decided on: that is its fence.

The same text serves PostgreSQL (postgres/dialect.py), so it keeps to what both databases understand: CASE
instead of iif, and a condition is a truth value, never a number.
"""

from dataclasses import dataclass

from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    AttemptStopped,
    AttemptStreamed,
    AttemptStuck,
    CursorMoved,
    MessageAccepted,
    MessageDropped,
    QuestionAnswered,
    QuestionAsked,
    Record,
    SessionBegun,
    SessionGiven,
    SessionHeld,
    SessionReleased,
    ToolCallFinished,
    ToolCallStarted,
    TranscriptFailed,
    TranscriptReady,
    TurnDone,
    TurnFailed,
    TurnInterrupted,
    TurnJoined,
    TurnOpened,
    TurnSteered,
)
from supervisor.journal import sums


@dataclass(frozen=True, slots=True)
class Write:
    """Changes exactly one row; none means that memory is ahead of disk."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class EachMessage:
    """A Write for every message of the record, as `message`; the latest time returned is `content_at`."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs after a fenced write and changes any number of rows, also none."""

    sql: str


Statement = Write | EachMessage | Sweep

# --- for every record that is an event ----------------------------------------------------------------------

SESSION_COUNTED = Sweep("UPDATE tallies SET number = number + 1 WHERE what = 'sessions'")
FIRST_TOLD = (
    Write(
        "session.made",
        """INSERT INTO sessions (name, seq, turns, held, created_at, last_at)
           VALUES (:session, 1, 0, 0, :at, :at)""",
    ),
    SESSION_COUNTED,
)
NEXT_TOLD = (
    Write(
        "session.advanced",
        "UPDATE sessions SET seq = :seq, last_at = :at WHERE name = :session AND seq = :seq - 1",
    ),
)
EVENT = """INSERT INTO events (session, seq, at, type, body) VALUES (?, ?, ?, ?, ?)"""

# --- pieces that several records share ----------------------------------------------------------------------

# Found by session and number; comparing the id keeps a stale frame from reaching another session's turn.
_THE_TURN = "session = :session AND number = :turn_number AND id = :turn"
_OPEN_ATTEMPT = f"""{_THE_TURN} AND state = 'running' AND attempts = :attempt
    AND EXISTS (SELECT 1 FROM attempts WHERE turn = :turn AND number = :attempt AND state = 'open')"""
_CONTENT = Write("turn.content", f"UPDATE turns SET content_at = :at WHERE {_OPEN_ATTEMPT}")
_CALLS_UNKNOWN = Sweep(
    """UPDATE tool_calls SET state = 'unknown'
       WHERE turn = :turn AND attempt = :attempt AND state = 'started'"""
)
_MESSAGE_TAKEN = EachMessage(
    "message.taken",
    """UPDATE messages SET state = 'taken', turn = :turn
       WHERE id = :message AND session = :session AND state = 'waiting' RETURNING at""",
)
# A turn runs exactly as long as its latest attempt is open or stopped, and asks as long as its question is
# open; a queued one has neither.
_AS_ATTEMPT_ALLOWS = """
    AND attempts = :attempt AND state = CASE
        WHEN EXISTS (SELECT 1 FROM attempts
            WHERE turn = :turn AND number = :attempt AND state IN ('open', 'stopped')) THEN 'running'
        WHEN EXISTS (SELECT 1 FROM questions WHERE turn = :turn AND state = 'open') THEN 'asking'
        ELSE 'queued' END"""
_QUESTION_WITHDRAWN = Sweep(
    "UPDATE questions SET state = 'withdrawn', ended_at = :at WHERE turn = :turn AND state = 'open'"
)
PAST_TURNS = Sweep(
    """INSERT INTO past_turns (session, number, body)
       SELECT :session, listed.key + 1, listed.value FROM json_each(:turns_json) AS listed"""
)

# --- by record ----------------------------------------------------------------------------------------------

STATEMENTS: dict[type[Record], tuple[Statement, ...]] = {
    MessageAccepted: (
        Write(
            "message.kept",
            """INSERT INTO messages
                   (id, session, key, kind, text, busy, clip, state, seq, at, sent_by, agent, instructions)
               VALUES (:message, :session, :key, :kind, :text, :busy, :clip,
                   CASE :clip WHEN '' THEN 'waiting' ELSE 'transcribing' END, :seq, :at,
                   :by, :agent, :instructions)""",
        ),
    ),
    SessionBegun: (
        Write("session.begun", "INSERT INTO begun (session, key, at) VALUES (:session, :key, :at)"),
        PAST_TURNS,
    ),
    TranscriptReady: (
        Write(
            "transcript.ready",
            """UPDATE messages SET state = 'waiting', text = :text
               WHERE id = :message AND session = :session AND state = 'transcribing'""",
        ),
    ),
    TranscriptFailed: (
        Write(
            "transcript.failed",
            """UPDATE messages SET state = 'failed', reason = :reason, ended_at = :at
               WHERE id = :message AND session = :session AND state = 'transcribing'""",
        ),
    ),
    MessageDropped: (
        Write(
            "message.dropped",
            """UPDATE messages SET state = 'dropped', ended_by = :by, ended_at = :at
               WHERE id = :message AND session = :session AND state IN ('transcribing', 'waiting')""",
        ),
    ),
    SessionHeld: (
        Write("session.held", "UPDATE sessions SET held = :seq WHERE name = :session AND held = 0"),
    ),
    SessionReleased: (
        Write("session.released", "UPDATE sessions SET held = 0 WHERE name = :session AND held > 0"),
    ),
    SessionGiven: (),  # a file has one host
    CursorMoved: (
        Write(
            "cursor.moved",
            """INSERT INTO cursors (session, name, seq, at)
               SELECT :session, :cursor, :seen, :at
               WHERE EXISTS (SELECT 1 FROM sessions WHERE name = :session AND seq >= :seen)
               ON CONFLICT (session, name) DO UPDATE SET seq = excluded.seq, at = excluded.at
               WHERE cursors.seq = :before AND cursors.seq < excluded.seq""",
        ),
    ),
    TurnOpened: (
        _MESSAGE_TAKEN,
        Write(
            "session.turned",
            "UPDATE sessions SET turns = :number WHERE name = :session AND turns = :number - 1 AND held = 0",
        ),
        Write(
            "turn.opened",
            """INSERT INTO turns (id, session, number, agent, state, messages, opened_at, content_at)
               VALUES (:turn, :session, :number, :agent, 'queued', :messages_json, :at, :content_at)""",
        ),
    ),
    TurnJoined: (
        _MESSAGE_TAKEN,
        EachMessage(
            "turn.joined",
            f"""UPDATE turns SET messages = json_insert(messages, '$[#]', :message), content_at = :content_at
                WHERE {_THE_TURN} AND state = 'queued' AND attempts = 0 RETURNING content_at""",
        ),
    ),
    AttemptOpened: (
        Write(
            "turn.running",
            f"""UPDATE turns SET state = 'running', attempts = :attempt
               WHERE {_THE_TURN} AND state = 'queued' AND attempts = :attempt - 1""",
        ),
        Write(
            "attempt.opened",
            """INSERT INTO attempts (turn, number, epoch, seat, incarnation, pid, level, state, opened_at)
               VALUES (:turn, :attempt, :epoch, :seat, :incarnation, :pid, :level, 'open', :at)""",
        ),
    ),
    AttemptStreamed: (
        Write(
            "attempt.streamed",
            """UPDATE attempts SET text_length = :offset + :length
               WHERE turn = :turn AND number = :attempt AND state = 'open' AND text_length = :offset""",
        ),
        _CONTENT,
        Write(
            "texts.added",
            'INSERT INTO texts (turn, attempt, "offset", text) VALUES (:turn, :attempt, :offset, :text)',
        ),
    ),
    AttemptStopped: (
        Write(
            "attempt.stopped",
            """UPDATE attempts SET state = 'stopped', verdict = :verdict_state, verdict_by = :verdict_by,
                   verdict_error = :verdict_error, verdict_hint = :verdict_hint
               WHERE turn = :turn AND number = :attempt AND state = 'open'""",
        ),
        _QUESTION_WITHDRAWN,
    ),
    # An event only: stuck processes are not durable state.
    AttemptStuck: (),
    AttemptLost: (
        Write(
            "attempt.lost",
            """UPDATE attempts SET state = 'lost', reason = :reason, ended_at = :at,
                   input_tokens = :input_tokens, output_tokens = :output_tokens, cost = :cost
               WHERE turn = :turn AND number = :attempt AND state = 'open'""",
        ),
        Write(
            "turn.queued",
            f"""UPDATE turns SET losses = :losses,
                   state = CASE WHEN EXISTS (SELECT 1 FROM questions WHERE turn = :turn AND state = 'open')
                       THEN 'asking' ELSE 'queued' END
               WHERE {_THE_TURN} AND state = 'running' AND attempts = :attempt
                   AND losses <= :losses""",
        ),
        _CALLS_UNKNOWN,
    ),
    ToolCallStarted: (
        _CONTENT,
        Write(
            "attempt.spent",
            """UPDATE attempts SET input_tokens = :input_tokens, output_tokens = :output_tokens, cost = :cost
               WHERE turn = :turn AND number = :attempt""",
        ),
        Sweep(
            """UPDATE tool_calls SET state = 'unknown'
               WHERE turn = :turn AND attempt = :attempt AND call = :call AND state = 'started'"""
        ),
        Write(
            "tool.started",
            """INSERT INTO tool_calls
                   (turn, attempt, call, name, summary, arguments, repeat, "offset", state, at)
               VALUES
                   (:turn, :attempt, :call, :name, :summary, :arguments, :repeat, :offset, 'started', :at)""",
        ),
    ),
    ToolCallFinished: (
        _CONTENT,
        Write(
            "tool.finished",
            """UPDATE tool_calls SET state = 'finished', ok = :ok, ms = :ms, result = :result
               WHERE turn = :turn AND attempt = :attempt AND call = :call AND state = 'started'""",
        ),
    ),
    TurnSteered: (
        Write(
            "message.steered",
            """UPDATE messages SET state = 'taken', turn = :turn
               WHERE id = :message AND session = :session AND state = 'waiting'""",
        ),
        Write(
            "turn.steered",
            f"""UPDATE turns SET messages = json_insert(messages, '$[#]', :message), content_at = :at
                WHERE {_OPEN_ATTEMPT}""",
        ),
    ),
    # The supervisor's own question follows a lost attempt; an agent's ends the open one, or is held by it.
    QuestionAsked: (
        Write(
            "turn.asking",
            f"""UPDATE turns SET content_at = :at,
                   state = CASE WHEN :hold > 0 THEN 'running' ELSE 'asking' END
               WHERE {_THE_TURN} AND attempts = :attempt
                   AND state = CASE WHEN :resumes THEN 'queued' ELSE 'running' END
                   AND :resumes <> EXISTS (SELECT 1 FROM attempts
                       WHERE turn = :turn AND number = :attempt AND state = 'open')""",
        ),
        Sweep(
            """UPDATE attempts SET input_tokens = :input_tokens, output_tokens = :output_tokens, cost = :cost,
                   state = CASE WHEN :hold > 0 THEN 'open' ELSE 'asked' END,
                   ended_at = CASE WHEN :hold > 0 THEN NULL ELSE :at END
               WHERE turn = :turn AND number = :attempt AND state = 'open'"""
        ),
        Write(
            "question.asked",
            """INSERT INTO questions
                   (id, session, turn, attempt, number, kind, text, choices, call, resumes, hold, state, at)
               SELECT :question, :session, :turn, :attempt, :number, :kind, :text, :choices_json, :call,
                   :resumes, :hold, 'open', :at
               WHERE :call = '' OR EXISTS (SELECT 1 FROM tool_calls
                   WHERE turn = :turn AND attempt = :attempt AND call = :call AND state = 'started')""",
        ),
        Sweep(
            """UPDATE tool_calls SET state = 'unknown'
               WHERE turn = :turn AND attempt = :attempt AND call <> :call AND state = 'started'
                   AND :hold = 0"""
        ),
    ),
    QuestionAnswered: (
        Write(
            "question.answered",
            """UPDATE questions SET state = 'answered', answer = :text, answered_by = :by, ended_at = :at
               WHERE id = :question AND turn = :turn AND state = 'open'""",
        ),
        Write(
            "turn.answered",
            f"""UPDATE turns SET state = CASE WHEN :is_held THEN 'running' ELSE 'queued' END, content_at = :at
               WHERE {_THE_TURN} AND attempts = :attempt
                   AND state = CASE WHEN :is_held THEN 'running' ELSE 'asking' END
                   AND :is_held = EXISTS (SELECT 1 FROM attempts
                       WHERE turn = :turn AND number = :attempt AND state = 'open')""",
        ),
        Sweep(
            """UPDATE tool_calls SET state = 'finished', ok = NOT :is_denied, ms = 0, result = :result
               WHERE turn = :turn AND attempt = :attempt AND call = :call AND state = 'started'
                   AND NOT :is_held"""
        ),
        Sweep(
            """UPDATE messages SET state = 'taken', turn = :turn
               WHERE id = :message AND session = :session AND state = 'waiting'"""
        ),
    ),
    TurnDone: (
        Write(
            "turn.done",
            f"""UPDATE turns SET state = 'done', ended_at = :at, text = :text,
                    earlier_length = :earlier_length, cost = :cost,
                    input_tokens = :input_tokens, output_tokens = :output_tokens
                WHERE {_OPEN_ATTEMPT}""",
        ),
        Write(
            "attempt.done",
            """UPDATE attempts SET state = 'done', ended_at = :at
               WHERE turn = :turn AND number = :attempt AND state = 'open'""",
        ),
        _CALLS_UNKNOWN,
        _QUESTION_WITHDRAWN,
        Sweep("DELETE FROM texts WHERE turn = :turn AND attempt = :attempt"),
        *map(Sweep, sums.added("done")),
    ),
    TurnInterrupted: (
        Write(
            "turn.interrupted",
            f"""UPDATE turns SET state = 'interrupted', ended_at = :at, ended_by = :by, killed = :killed_json,
                    input_tokens = :input_tokens, output_tokens = :output_tokens, cost = :cost
                WHERE {_THE_TURN} {_AS_ATTEMPT_ALLOWS}
                    AND NOT EXISTS (SELECT 1 FROM attempts WHERE turn = :turn AND number = :attempt
                        AND (state = 'open' OR (state = 'stopped' AND verdict <> 'interrupted')))""",
        ),
        _CALLS_UNKNOWN,
        _QUESTION_WITHDRAWN,
        Sweep(
            """UPDATE attempts SET state = 'interrupted', ended_at = :at
               WHERE turn = :turn AND number = :attempt AND state = 'stopped'"""
        ),
        *map(Sweep, sums.added("interrupted")),
    ),
    TurnFailed: (
        Write(
            "turn.failed",
            f"""UPDATE turns SET state = 'failed', error = :error, hint = :hint, poison = :poison,
                    ended_at = :at, cost = :cost, input_tokens = :input_tokens, output_tokens = :output_tokens
                WHERE {_THE_TURN} {_AS_ATTEMPT_ALLOWS}
                    AND NOT EXISTS (SELECT 1 FROM attempts WHERE turn = :turn AND number = :attempt
                        AND state = 'stopped' AND verdict <> 'failed')""",
        ),
        _CALLS_UNKNOWN,
        _QUESTION_WITHDRAWN,
        Sweep(
            """UPDATE attempts SET state = 'failed', reason = :error, ended_at = :at
               WHERE turn = :turn AND number = :attempt AND state IN ('open', 'stopped')"""
        ),
        *map(Sweep, sums.added("failed")),
    ),
}
