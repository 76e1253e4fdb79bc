-- The tables of supervisor/journal/schema as far as they have come, for several hosts. Texts sort by their
-- bytes, as in SQLite. There are no checks of values: PostgreSQL would quote the row, and with it a person, in
-- its log.

-- One start of one host. `batch` counts its transactions, so that each is applied once; one that is gone
-- writes nothing more. `secret` tells two lives of one number apart after the database was set back.
CREATE TABLE lives (
    epoch bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    secret text COLLATE "C" NOT NULL,
    batch bigint NOT NULL DEFAULT 0,
    gone boolean NOT NULL DEFAULT false,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 20);
CREATE INDEX lives_here ON lives (host) WHERE NOT gone;

-- Counts that would otherwise cost a scan of the whole history; a row per life, so that hosts do not wait for
-- each other.
CREATE TABLE tallies (
    life bigint NOT NULL,
    what text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (life, what)
) WITH (fillfactor = 50);
-- Days of UTC on which turns ended that used tokens.
CREATE TABLE days (
    day text COLLATE "C" NOT NULL,
    life bigint NOT NULL,
    tokens bigint NOT NULL,
    cost bigint NOT NULL,
    PRIMARY KEY (day, life)
) WITH (fillfactor = 50);

CREATE TABLE sessions (
    name text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    turns bigint NOT NULL,
    held bigint NOT NULL,
    created_at double precision NOT NULL,
    last_at double precision NOT NULL,
    tokens bigint NOT NULL DEFAULT 0,
    cost bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX sessions_held ON sessions (name) WHERE held > 0;
CREATE INDEX sessions_recent ON sessions (last_at, name);

CREATE TABLE messages (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    session text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    busy text COLLATE "C" NOT NULL,
    clip text COLLATE "C" NOT NULL DEFAULT '',
    state text COLLATE "C" NOT NULL,
    turn text COLLATE "C",
    seq bigint NOT NULL,
    at double precision NOT NULL,
    ended_by text COLLATE "C" NOT NULL DEFAULT '',
    reason text COLLATE "C" NOT NULL DEFAULT '',
    ended_at double precision,
    sent_by text COLLATE "C" NOT NULL DEFAULT '',
    agent text COLLATE "C" NOT NULL DEFAULT '',
    instructions text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX messages_waiting ON messages (session, seq) WHERE state IN ('transcribing', 'waiting');
CREATE INDEX messages_by_clip ON messages (clip) WHERE clip <> '';

-- `messages` is a JSON list of ids in the order in which the turn took them in.
CREATE TABLE turns (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    agent text COLLATE "C" NOT NULL DEFAULT '',
    state text COLLATE "C" NOT NULL,
    messages text COLLATE "C" NOT NULL,
    opened_at double precision NOT NULL,
    ended_at double precision,
    content_at double precision NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    text text COLLATE "C" NOT NULL DEFAULT '',
    earlier_length bigint NOT NULL DEFAULT 0,
    error text COLLATE "C" NOT NULL DEFAULT '',
    hint text COLLATE "C" NOT NULL DEFAULT '',
    ended_by text COLLATE "C" NOT NULL DEFAULT '',
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost bigint NOT NULL DEFAULT 0,
    poison boolean NOT NULL DEFAULT false,
    killed text COLLATE "C",
    UNIQUE (session, number)
);
-- Unique: the database itself refuses a second open turn of a session.
CREATE UNIQUE INDEX turns_open ON turns (session) WHERE state IN ('queued', 'running', 'asking');
CREATE INDEX turns_unhappy ON turns (state, position) WHERE state IN ('failed', 'interrupted');

-- `text_length` counts the characters of `texts`, so that none is missed or stored twice.
CREATE TABLE attempts (
    turn text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    epoch bigint NOT NULL,
    seat bigint NOT NULL,
    incarnation bigint NOT NULL,
    pid bigint NOT NULL,
    level text COLLATE "C" NOT NULL DEFAULT '',
    state text COLLATE "C" NOT NULL,
    text_length bigint NOT NULL DEFAULT 0,
    verdict text COLLATE "C" NOT NULL DEFAULT '',
    verdict_by text COLLATE "C" NOT NULL DEFAULT '',
    verdict_error text COLLATE "C" NOT NULL DEFAULT '',
    verdict_hint text COLLATE "C" NOT NULL DEFAULT '',
    reason text COLLATE "C" NOT NULL DEFAULT '',
    opened_at double precision NOT NULL,
    ended_at double precision,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (turn, number)
) WITH (fillfactor = 70);

CREATE TABLE texts (
    turn text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    "offset" bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    PRIMARY KEY (turn, attempt, "offset")
);

-- Not unique by call: model servers are known to name two calls of one attempt alike.
CREATE TABLE tool_calls (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    call text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    arguments text COLLATE "C" NOT NULL,
    repeat text COLLATE "C" NOT NULL,
    "offset" bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    ok boolean,
    ms bigint,
    result text COLLATE "C",
    at double precision NOT NULL
);
CREATE INDEX tool_calls_by_attempt ON tool_calls (turn, attempt);
CREATE UNIQUE INDEX tool_calls_open ON tool_calls (turn, attempt, call) WHERE state = 'started';

CREATE TABLE questions (
    id text COLLATE "C" PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    turn text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    number bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    choices text COLLATE "C" NOT NULL,
    call text COLLATE "C" NOT NULL,
    resumes boolean NOT NULL DEFAULT false,
    hold bigint NOT NULL DEFAULT 0,
    state text COLLATE "C" NOT NULL,
    answer text COLLATE "C" NOT NULL DEFAULT '',
    answered_by text COLLATE "C" NOT NULL DEFAULT '',
    at double precision NOT NULL,
    ended_at double precision
);
-- Unique: a turn waits for one answer at a time.
CREATE UNIQUE INDEX questions_open ON questions (turn) WHERE state = 'open';
CREATE INDEX questions_by_turn ON questions (turn);
CREATE INDEX questions_waiting ON questions (at, id) WHERE state = 'open';
-- Finds the consent to exceed a budget, whose text names the budget. By a hash: a long text fits no index.
CREATE INDEX questions_approved ON questions (md5(text), session)
    WHERE kind = 'approve' AND state = 'answered' AND answer = 'yes';

CREATE TABLE events (
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    type text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
);

-- How far a client that has a name has read a session's events.
CREATE TABLE cursors (
    session text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (session, name)
);

-- Sessions that began with a history, imported by a client or copied from another session.
CREATE TABLE begun (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text COLLATE "C" NOT NULL UNIQUE,
    key text COLLATE "C" NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE past_turns (
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, number)
);

-- A write that did not change the rows it was decided on ends its transaction here, in the server: the rest of
-- the batch is on its way already.
CREATE FUNCTION fence(changed bigint, wanted bigint, what text, at text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF changed IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = what, DETAIL = at;
    END IF;
END $$;

-- Functions of SQLite that the statements of the journal use. The type json takes the escape of U+0000, its
-- operators that return text do not.
CREATE FUNCTION json_extract(body text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g')::json ->> substr(path, 3)
$$;
CREATE FUNCTION json_insert(list text, path text, added text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (list::jsonb || to_jsonb(added))::text
$$;
