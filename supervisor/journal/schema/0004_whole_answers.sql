-- What an attempt has cost as far as it has told. Those of a turn are from here on those of all its attempts.
ALTER TABLE attempts ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
-- How many characters of `text` earlier attempts said; of older turns it has the words of the last one only.
ALTER TABLE turns ADD COLUMN said_before INTEGER NOT NULL DEFAULT 0;
