-- An agent may ask without a tool call; until now such a question was the supervisor's own: is the turn to be
-- resumed?
ALTER TABLE questions ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0;
UPDATE questions SET resumes = 1 WHERE call = '';
-- The number that the attempt gave a question it holds for, 0 when the question ended the attempt.
ALTER TABLE questions ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;
