-- The names of docs/glossary.md: text instead of speech, and a message whose transcript failed is failed.
ALTER TABLE speech RENAME TO texts;
-- The characters of `texts`, so that none is missed or stored twice.
ALTER TABLE attempts RENAME COLUMN said TO text_length;
-- How many characters of `text` come from earlier attempts.
ALTER TABLE turns RENAME COLUMN said_before TO earlier_length;

-- A check cannot be changed in place.
CREATE TABLE messages_renamed (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    busy TEXT NOT NULL,
    clip TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('transcribing', 'waiting', 'taken', 'dropped', 'failed')),
    turn TEXT,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    ended_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    ended_at REAL
) STRICT;
INSERT INTO messages_renamed SELECT
    position, id, session, key, kind, text, busy, clip, iif(state = 'refused', 'failed', state), turn, seq, at,
    ended_by, reason, ended_at
    FROM messages ORDER BY position;
DROP TABLE messages;
ALTER TABLE messages_renamed RENAME TO messages;
CREATE INDEX messages_waiting ON messages (session, seq) WHERE state IN ('transcribing', 'waiting');
CREATE INDEX messages_by_clip ON messages (clip) WHERE clip <> '';

-- Where the next attempt continues is an offset, as in deltas.
UPDATE events SET body = json_remove(json_set(body, '$.offset', body -> '$.said'), '$.said')
    WHERE type = 'attempt.lost' AND body -> '$.said' IS NOT NULL;
