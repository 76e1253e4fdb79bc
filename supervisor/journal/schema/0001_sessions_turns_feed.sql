-- Which life of the supervisor this is.
CREATE TABLE life (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL
) STRICT;
INSERT INTO life (id, epoch) VALUES (1, 0);

-- Counts that would otherwise cost a scan of the whole history.
CREATE TABLE tallies (
    what TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tallies (what, number) VALUES ('sessions', 0), ('done', 0), ('failed', 0), ('interrupted', 0);

CREATE TABLE sessions (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    held INTEGER NOT NULL,
    created_at REAL NOT NULL,
    last_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
-- `held` is the seq at which what waits was held, 0 when it is not.
CREATE INDEX sessions_held ON sessions (name) WHERE held > 0;
CREATE INDEX sessions_recent ON sessions (last_at);

CREATE TABLE messages (
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
    ended_at REAL,
    UNIQUE (session, key)
) STRICT;
CREATE INDEX messages_waiting ON messages (session, seq) WHERE state IN ('transcribing', 'waiting');
CREATE INDEX messages_by_clip ON messages (clip) WHERE clip <> '';

-- `messages` is a JSON list of ids in the order in which the turn took them in.
CREATE TABLE turns (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
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
-- Unique: the file itself refuses a second owner of a session.
CREATE UNIQUE INDEX turns_open ON turns (session) WHERE state IN ('queued', 'running', 'asking');
CREATE INDEX turns_unhappy ON turns (state) WHERE state IN ('failed', 'interrupted');

-- `said` counts the characters kept in `speech`, so that words can neither be missed nor doubled.
CREATE TABLE attempts (
    turn TEXT NOT NULL,
    number INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    seat INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'stopped', 'asked', 'done', 'failed', 'interrupted', 'lost')),
    said INTEGER NOT NULL DEFAULT 0,
    verdict TEXT NOT NULL DEFAULT '',
    verdict_by TEXT NOT NULL DEFAULT '',
    verdict_error TEXT NOT NULL DEFAULT '',
    verdict_hint TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    opened_at REAL NOT NULL,
    ended_at REAL,
    PRIMARY KEY (turn, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE speech (
    turn TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (turn, attempt, "offset")
) STRICT, WITHOUT ROWID;

-- Not unique by call: model servers are known to name two calls of one attempt alike.
CREATE TABLE tool_calls (
    position INTEGER PRIMARY KEY,
    turn TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    call TEXT NOT NULL,
    name TEXT NOT NULL,
    summary TEXT NOT NULL,
    arguments TEXT NOT NULL,
    repeat TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'finished', 'unknown')),
    ok INTEGER,
    ms INTEGER,
    result TEXT,
    at REAL NOT NULL
) STRICT;
CREATE INDEX tool_calls_by_attempt ON tool_calls (turn, attempt);
CREATE UNIQUE INDEX tool_calls_open ON tool_calls (turn, attempt, call) WHERE state = 'started';

-- A question waits for a human; `call` is the tool call it answers, or empty when the supervisor asks.
CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    choices TEXT NOT NULL,
    call TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'withdrawn')),
    answer TEXT NOT NULL DEFAULT '',
    answered_by TEXT NOT NULL DEFAULT '',
    at REAL NOT NULL,
    ended_at REAL
) STRICT, WITHOUT ROWID;
-- Unique: a turn waits for one answer at a time.
CREATE UNIQUE INDEX questions_open ON questions (turn) WHERE state = 'open';
CREATE INDEX questions_by_turn ON questions (turn);
CREATE INDEX questions_waiting ON questions (at) WHERE state = 'open';

-- `position` is the order of all sessions' events together.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (session, seq)
) STRICT;
