-- Programs are made for a schema, and hosts of an older and a newer program run side by side. A step that a program
-- of an older schema would not understand raises `oldest`; such a program is refused from then on. One that only
-- adds leaves it. `moved_at` keeps services from a journal that was moved elsewhere.
ALTER TABLE journal_schema
    ADD COLUMN oldest bigint NOT NULL DEFAULT 4,
    ADD COLUMN moved_at timestamptz;

-- What an operator asks of a host, through any other: draining or open. The host clears it when it does so.
ALTER TABLE lives ADD asked text COLLATE "C" NOT NULL DEFAULT '';
