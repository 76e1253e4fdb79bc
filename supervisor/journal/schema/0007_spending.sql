-- What turns cost, in millionths of the currency of the prices in hermes.toml.
ALTER TABLE attempts ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
-- The sums of all ended turns, so that a budget is compared with one row. They outlive pruned turns.
ALTER TABLE sessions ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET tokens =
    (SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM turns WHERE session = sessions.name);
-- Days of UTC on which turns ended that used tokens.
CREATE TABLE days (
    day TEXT PRIMARY KEY,
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO days (day, tokens, cost)
    SELECT date(ended_at, 'unixepoch'), sum(input_tokens + output_tokens), 0
    FROM turns WHERE ended_at IS NOT NULL AND input_tokens + output_tokens > 0 GROUP BY 1;
-- Finds the consent to exceed a budget, whose text names the budget.
CREATE INDEX questions_approved ON questions (text, session)
    WHERE kind = 'approve' AND state = 'answered' AND answer = 'yes';
