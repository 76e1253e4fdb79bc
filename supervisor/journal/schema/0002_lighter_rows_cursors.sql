-- Fewer trees to write for a message on its way: each costs a page of the log in every commit.

-- A feed lies together and in its order; no order of all sessions' events is ever asked for.
CREATE TABLE events_anew (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO events_anew SELECT session, seq, at, type, body FROM events ORDER BY session, seq;
DROP TABLE events;
ALTER TABLE events_anew RENAME TO events;

-- `id` is made from session and key, so that it alone keeps a key from being used twice.
CREATE TABLE messages_anew (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    busy TEXT NOT NULL,
    clip TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('transcribing', 'waiting', 'taken', 'dropped', 'refused')),
    turn TEXT,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    ended_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    ended_at REAL
) STRICT;
INSERT INTO messages_anew SELECT
    position, id, session, key, kind, text, busy, clip, state, turn, seq, at, ended_by, reason, ended_at
    FROM messages ORDER BY position;
DROP TABLE messages;
ALTER TABLE messages_anew RENAME TO messages;
CREATE INDEX messages_waiting ON messages (session, seq) WHERE state IN ('transcribing', 'waiting');
CREATE INDEX messages_by_clip ON messages (clip) WHERE clip <> '';

-- `id` is session and number in one word, so it is found by these two.
-- `input_tokens` and `output_tokens` are those of the attempt that ended it.
CREATE TABLE turns_anew (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'asking', 'done', 'failed', 'interrupted')),
    messages TEXT NOT NULL,
    opened_at REAL NOT NULL,
    ended_at REAL,
    content_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    text TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    ended_by TEXT NOT NULL DEFAULT '',
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    poison INTEGER NOT NULL DEFAULT 0,
    killed TEXT,
    UNIQUE (session, number)
) STRICT;
INSERT INTO turns_anew SELECT
    position, id, session, number, state, messages, opened_at, ended_at, content_at, attempts, losses, text,
    error, hint, ended_by, input_tokens, output_tokens, poison, killed
    FROM turns ORDER BY position;
DROP TABLE turns;
ALTER TABLE turns_anew RENAME TO turns;
CREATE UNIQUE INDEX turns_open ON turns (session) WHERE state IN ('queued', 'running', 'asking');
CREATE INDEX turns_unhappy ON turns (state) WHERE state IN ('failed', 'interrupted');

-- How far a client that has a name has read a session's feed.
CREATE TABLE cursors (
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
