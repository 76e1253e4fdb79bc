-- Sessions that began with a history, imported by a client or copied from another session.
CREATE TABLE begun (
    position INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
-- Their turns, oldest first, as an attempt is told of them; `body` is JSON (supervisor/journal/history.py).
CREATE TABLE past_turns (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
