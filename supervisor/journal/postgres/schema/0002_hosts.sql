-- Several hosts share the database. A life is held by a lease: `until` is by the database's clock, and a life
-- that is not renewed until then may be marked as gone by another. A life that was begun by a version without
-- leases has one from now on.
ALTER TABLE lives
    ADD name text COLLATE "C" NOT NULL DEFAULT '',
    ADD lease double precision NOT NULL DEFAULT 15,
    ADD until timestamptz NOT NULL DEFAULT clock_timestamp() + interval '15 s',
    ADD renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD gone_at timestamptz,
    -- Gone, and no session belongs to it any more.
    ADD cleared boolean NOT NULL DEFAULT false,
    -- A JSON list of texts.
    ADD labels text COLLATE "C" NOT NULL DEFAULT '[]',
    ADD version text COLLATE "C" NOT NULL DEFAULT '',
    -- The schema that its program knows.
    ADD schema bigint NOT NULL DEFAULT 1,
    ADD state text COLLATE "C" NOT NULL DEFAULT 'open',
    -- How many turns the host runs at once, and how many more it could run now.
    ADD seats bigint NOT NULL DEFAULT 0,
    ADD free bigint NOT NULL DEFAULT 0;
UPDATE lives SET name = host, gone_at = began_at WHERE gone;
UPDATE lives SET name = host WHERE NOT gone;
CREATE INDEX lives_orphaning ON lives (epoch) WHERE gone AND NOT cleared;

-- The life that has a session in memory. A session at rest without a worker has no row.
-- `claim` numbers the claims of one life, so that a release that comes late does not end a later claim.
-- `taken` is false while the session was given to that life, which has not loaded it yet.
CREATE TABLE owners (
    session text COLLATE "C" PRIMARY KEY,
    life bigint NOT NULL,
    claim bigint NOT NULL,
    taken boolean NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX owners_by_life ON owners (life);
CREATE INDEX owners_given ON owners (life) WHERE NOT taken;

-- The name of the host that has the session's files; only of hosts whose files are local. `came_from` is the
-- one that had them before, and `turn` the first turn on this one: its agent is told.
CREATE TABLE homes (
    session text COLLATE "C" PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    came_from text COLLATE "C" NOT NULL DEFAULT '',
    turn text COLLATE "C" NOT NULL
);

-- Claims a session for the life `mine`, and returns the life that has it and whether that has loaded it. 0:
-- no life has it, and `mine` may not. `fits` says that this host may have the session; `here` is the name of a
-- host whose files are local, NULL elsewhere.
--
-- A claim need not be durable by itself: what is written because of it is, and with it everything before. To
-- take over a session of a life that is gone must be, because nothing may be written for some time.
CREATE FUNCTION claim_session(wanted text, mine bigint, number bigint, fits boolean, here text)
RETURNS TABLE (owner bigint, is_taken boolean) LANGUAGE plpgsql AS $$
DECLARE
    found owners%ROWTYPE;
    at_home bigint;
BEGIN
    LOOP
        SELECT * INTO found FROM owners WHERE owners.session = wanted;
        IF found.life = mine THEN
            PERFORM set_config('synchronous_commit', 'off', true);
            UPDATE owners SET claim = greatest(owners.claim, number)
                WHERE owners.session = wanted AND owners.life = mine
                RETURNING owners.life, owners.taken INTO owner, is_taken;
            IF owner IS NOT NULL THEN
                RETURN NEXT;
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        IF EXISTS (SELECT 1 FROM lives WHERE epoch = found.life AND NOT gone) THEN
            owner := found.life; is_taken := found.taken;
            RETURN NEXT;
            RETURN;
        END IF;
        SELECT max(epoch) INTO at_home FROM homes JOIN lives ON lives.name = homes.host AND NOT gone
            WHERE homes.session = wanted AND homes.host <> here;
        IF at_home IS NOT NULL OR NOT fits THEN
            owner := coalesce(at_home, 0); is_taken := false;
            RETURN NEXT;
            RETURN;
        END IF;
        IF found.life IS NOT NULL THEN
            PERFORM set_config('synchronous_commit', 'on', true);
            UPDATE owners SET life = mine, claim = number, taken = false
                WHERE owners.session = wanted AND owners.life = found.life;
        ELSE
            PERFORM set_config('synchronous_commit', 'off', true);
            INSERT INTO owners VALUES (wanted, mine, number, true) ON CONFLICT DO NOTHING;
        END IF;
        -- Whoever was first has it: the next look finds out.
    END LOOP;
END $$;
