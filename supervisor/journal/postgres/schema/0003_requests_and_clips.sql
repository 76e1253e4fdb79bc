-- Requests of one host to another about a session that the other has. Not logged: after a crash of the server
-- they are worth nothing, because their clients have been refused. `body` and `answer` are JSON.
CREATE UNLOGGED TABLE requests (
    id text COLLATE "C" PRIMARY KEY,
    from_life bigint NOT NULL,
    to_life bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    answer text COLLATE "C",
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX requests_unanswered ON requests (to_life) WHERE answer IS NULL;

-- Clips of messages, so that any host can transcribe them. Audio is compressed already.
CREATE TABLE clips (
    name text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE clips ALTER content SET STORAGE EXTERNAL;
