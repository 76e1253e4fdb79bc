-- Who sent a message, and what it wants of the turn that it opens: an agent, and instructions for it.
ALTER TABLE messages ADD COLUMN sent_by TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN instructions TEXT NOT NULL DEFAULT '';
