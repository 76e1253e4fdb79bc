-- Which agent a turn is for, settled when it opens; empty for turns of earlier versions.
ALTER TABLE turns ADD COLUMN agent TEXT NOT NULL DEFAULT '';
-- The level of the sandbox in which an attempt was made.
ALTER TABLE attempts ADD COLUMN level TEXT NOT NULL DEFAULT '';
