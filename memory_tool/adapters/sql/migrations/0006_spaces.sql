-- Change of the embedding model in place. A chunk's row holds its vector in one space; those in other
-- spaces (the one that is being built, the one before, kept for a way back) lie beside it. A search
-- reads vectors of the active space only, whichever of the two places they are in.

-- The first space of a store has the number 1, so that an index knows the space that it is of before
-- any is recorded. No number is ever used again: files and targets are named by it.
CREATE SEQUENCE threefold.space_number;
SELECT setval('threefold.space_number', coalesce(max(space_id), 1)) FROM threefold.embedding_space;
ALTER TABLE threefold.embedding_space ALTER COLUMN space_id DROP IDENTITY;
-- filling: vectors are being made; building: indexes follow, and what is missing is numbered;
-- active: searched; kept: for a way back.
ALTER TABLE threefold.embedding_space
    ADD COLUMN state text NOT NULL DEFAULT 'active'
        CHECK (state IN ('filling', 'building', 'active', 'kept')),
    -- What the setting `embedder` says to get the model; NULL where the definition tells.
    ADD COLUMN embedder text,
    -- The transaction that made it active: what ran beside it may have written into the old space.
    ADD COLUMN switched_by xid8;
ALTER TABLE threefold.embedding_space ALTER COLUMN state DROP DEFAULT;
UPDATE threefold.embedding_space SET state = 'kept' WHERE NOT active;
ALTER TABLE threefold.embedding_space DROP COLUMN active;
CREATE UNIQUE INDEX one_active_space ON threefold.embedding_space ((true)) WHERE state = 'active';

-- A constant default costs no rewrite.
DO $$
BEGIN
    EXECUTE format(
        'ALTER TABLE threefold.chunk ADD COLUMN space smallint NOT NULL DEFAULT %s',
        coalesce((SELECT space_id FROM threefold.embedding_space WHERE state = 'active'), 1));
END $$;
ALTER TABLE threefold.chunk ALTER COLUMN space DROP DEFAULT;

-- Where the content of a cold memory lies.
ALTER TABLE threefold.memory ADD COLUMN archive jsonb;

CREATE TABLE threefold.chunk_vector (
    ns_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    ordinal smallint NOT NULL,
    space_id smallint NOT NULL,
    embedding bytea NOT NULL,
    PRIMARY KEY (ns_id, memory_id, ordinal, space_id)
) PARTITION BY HASH (ns_id);
ALTER TABLE threefold.chunk_vector ALTER COLUMN embedding SET STORAGE EXTERNAL;
DO $$
BEGIN
    FOR number IN 0 .. 7 LOOP
        EXECUTE format(
            'CREATE TABLE threefold.%I PARTITION OF threefold.chunk_vector'
            ' FOR VALUES WITH (MODULUS 8, REMAINDER %s)', 'chunk_vector_' || number, number);
        EXECUTE format(
            'ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
            'chunk_vector_' || number);
    END LOOP;
END $$;
ALTER TABLE threefold.chunk_vector ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY app_rows ON threefold.chunk_vector TO threefold_app
    USING (ns_id + 0 = ANY ((SELECT threefold.allowed_namespaces())::bigint[]));
CREATE POLICY worker_rows ON threefold.chunk_vector TO threefold_worker USING (true);
GRANT SELECT, DELETE ON threefold.chunk_vector TO threefold_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON threefold.chunk_vector TO threefold_worker;

-- What was measured or made of the vectors of a space, beside the indexes.
CREATE TABLE threefold.side_structure (
    name text NOT NULL,
    space_id smallint NOT NULL REFERENCES threefold.embedding_space ON DELETE CASCADE,
    content jsonb NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, space_id)
);
GRANT SELECT ON threefold.side_structure TO threefold_app, threefold_worker;
GRANT INSERT, UPDATE, DELETE ON threefold.side_structure TO threefold_worker;
GRANT DELETE ON threefold.embedding_space TO threefold_worker;
GRANT USAGE ON SEQUENCE threefold.space_number TO threefold_worker;

-- The vector of a chunk in a space that its own row doesn't hold. A function, so that the plans of
-- searches stay as small as they are: it runs only after a change of model.
CREATE FUNCTION threefold.vector_beside(
    of_ns bigint, of_memory uuid, of_ordinal smallint, wanted_space smallint
) RETURNS bytea
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT v.embedding FROM threefold.chunk_vector v
            WHERE v.ns_id = of_ns AND v.memory_id = of_memory AND v.ordinal = of_ordinal
              AND v.space_id = wanted_space);
END $$;

-- Puts down vectors of one space for chunks that lack them, if they still are the chunks that were
-- read. While the space is being filled nothing follows it. From then on each memory takes a number,
-- so that the indexes hear of it. Says how many chunks got their vector.
CREATE FUNCTION threefold.fill_vectors(
    target_ns bigint, wanted_space smallint, made json, embeddings bytea, new_stamp bigint
) RETURNS int
LANGUAGE plpgsql
SET lock_timeout = '10s'
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    standing text;
    number bigint;
    one record;
    filled int := 0;
    touched uuid[] := '{}';
BEGIN
    -- Shared, and before the clock: who changes the state waits for this.
    SELECT s.state INTO standing FROM threefold.embedding_space s
        WHERE s.space_id = wanted_space FOR SHARE;
    IF standing IS NULL OR standing = 'kept' THEN
        RETURN 0;
    END IF;
    SELECT c.nseq INTO STRICT number FROM threefold.ns_clock c WHERE c.ns_id = target_ns FOR UPDATE;
    FOR one IN
        SELECT k.memory_id, k.ordinal, k.space, substr(embeddings, g.first_byte, g.bytes) AS embedding
        FROM json_to_recordset(made) AS g (
            memory_id uuid, content_hash text, ordinal smallint, start int, stop int,
            first_byte int, bytes int)
        CROSS JOIN LATERAL (
            SELECT m.state, m.content_hash FROM threefold.memory m
            WHERE m.ns_id = target_ns AND m.id = g.memory_id OFFSET 0
        ) m
        CROSS JOIN LATERAL (
            SELECT k.memory_id, k.ordinal, k.space, k.start, k.stop FROM threefold.chunk k
            WHERE k.ns_id = target_ns AND k.memory_id = g.memory_id AND k.ordinal = g.ordinal
            OFFSET 0
        ) k
        WHERE m.state = 'live' AND m.content_hash = decode(g.content_hash, 'hex')
          AND k.start = g.start AND k.stop = g.stop
    LOOP
        IF one.space = wanted_space THEN
            UPDATE threefold.chunk k SET embedding = one.embedding
                WHERE k.ns_id = target_ns AND k.memory_id = one.memory_id AND k.ordinal = one.ordinal;
        ELSE
            INSERT INTO threefold.chunk_vector (ns_id, memory_id, ordinal, space_id, embedding)
                VALUES (target_ns, one.memory_id, one.ordinal, wanted_space, one.embedding)
                ON CONFLICT (ns_id, memory_id, ordinal, space_id)
                DO UPDATE SET embedding = excluded.embedding;
        END IF;
        filled := filled + 1;
        IF standing <> 'filling' AND NOT one.memory_id = ANY (touched) THEN
            number := number + 1;
            touched := touched || one.memory_id;
            UPDATE threefold.memory m SET nseq = number, vector_nseq = number
                WHERE m.ns_id = target_ns AND m.id = one.memory_id;
            INSERT INTO threefold.audit (ns_id, nseq, memory_id, version, action, at)
                SELECT target_ns, number, m.id, m.version, 'embed', clock_timestamp()
                FROM threefold.memory m WHERE m.ns_id = target_ns AND m.id = one.memory_id;
        END IF;
    END LOOP;
    IF touched <> '{}' THEN
        UPDATE threefold.ns_clock
            SET nseq = number, stamp = new_stamp,
                changed_at = date_bin('1 minute', clock_timestamp(), 'epoch')
            WHERE ns_id = target_ns;
    END IF;
    RETURN filled;
END $$;

-- The write of 0005, which is told now what space its vectors are of, and where a cold memory's
-- content lies.
DROP FUNCTION threefold.write_changes(
    bigint, bigint, bigint, bigint, json, uuid[], int, uuid[], uuid[], json, bytea, bytea, bytea,
    jsonb);

-- Puts down row images that take the numbers above base_number, in order, with their chunks,
-- versions and audit. A retired twin stands before the row that replaces it.
CREATE FUNCTION threefold.write_changes(
    target_ns bigint, base_number bigint, last_number bigint, new_stamp bigint, changed json,
    archived uuid[], versions_kept int, rechunked uuid[], deleted uuid[], chunks json,
    embeddings bytea, space_of_embeddings text, receipt_key bytea, receipt_hash bytea,
    receipt jsonb
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    one uuid;
    newest int;
    active smallint;
    active_name text;
BEGIN
    INSERT INTO threefold.idempotency (ns_id, key_hash, request_hash, response)
        VALUES (target_ns, receipt_key, receipt_hash, receipt);
    IF last_number = base_number THEN
        RETURN;
    END IF;

    UPDATE threefold.ns_clock
        SET nseq = last_number, stamp = new_stamp,
            changed_at = date_bin('1 minute', clock_timestamp(), 'epoch')
        WHERE ns_id = target_ns AND nseq = base_number;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the clock of namespace % moved under its lock', target_ns;
    END IF;

    IF archived IS NOT NULL THEN
        FOREACH one IN ARRAY archived LOOP
            INSERT INTO threefold.memory_version (ns_id, memory_id, version, image, replaced_at)
                SELECT m.ns_id, m.id, m.version, to_jsonb(m), clock_timestamp()
                FROM threefold.memory m WHERE m.ns_id = target_ns AND m.id = one
                RETURNING version INTO newest;
            DELETE FROM threefold.memory_version v
                WHERE v.ns_id = target_ns AND v.memory_id = one
                  AND v.version <= newest - versions_kept;
        END LOOP;
    END IF;

    WITH image AS MATERIALIZED (
        SELECT * FROM json_to_recordset(changed) AS c (
            action text, id uuid, nseq bigint, vector_nseq bigint, keyword_nseq bigint, state text,
            version int, content text, content_hash text, dedup_hash text, key text, key_hash text,
            type text, confidence double precision, importance smallint, pinned boolean, tags jsonb,
            source jsonb, metadata jsonb, created_at timestamptz, updated_at timestamptz,
            occurred_at timestamptz, expires_at timestamptz, verified_at timestamptz, run_id text,
            conversation_id text, turn_position int, turn_role text, turn_name text, tier text,
            archive jsonb, extra text, chunk_high int)
    ), written AS (
        INSERT INTO threefold.memory (
            ns_id, id, nseq, vector_nseq, keyword_nseq, state, version, content, content_hash,
            dedup_hash, key, key_hash, type, confidence, importance, pinned, tags, source, metadata,
            created_at, updated_at, occurred_at, expires_at, verified_at, run_id, conversation_id,
            turn_position, turn_role, turn_name, tier, archive, extra, chunk_high)
        SELECT
            target_ns, id, nseq, vector_nseq, keyword_nseq, state, version, content,
            decode(content_hash, 'hex'), decode(dedup_hash, 'hex'), key, decode(key_hash, 'hex'),
            type, confidence, importance, pinned, tags, source, metadata, created_at, updated_at,
            occurred_at, expires_at, verified_at, run_id, conversation_id, turn_position, turn_role,
            turn_name, tier, archive, extra, chunk_high
        FROM image
        ON CONFLICT (ns_id, id) DO UPDATE SET
            nseq = excluded.nseq, vector_nseq = excluded.vector_nseq,
            keyword_nseq = excluded.keyword_nseq, state = excluded.state,
            version = excluded.version, content = excluded.content,
            content_hash = excluded.content_hash, dedup_hash = excluded.dedup_hash,
            key = excluded.key, key_hash = excluded.key_hash, type = excluded.type,
            confidence = excluded.confidence, importance = excluded.importance,
            pinned = excluded.pinned, tags = excluded.tags, source = excluded.source,
            metadata = excluded.metadata, updated_at = excluded.updated_at,
            occurred_at = excluded.occurred_at, expires_at = excluded.expires_at,
            verified_at = excluded.verified_at, run_id = excluded.run_id,
            conversation_id = excluded.conversation_id, turn_position = excluded.turn_position,
            turn_role = excluded.turn_role, turn_name = excluded.turn_name, tier = excluded.tier,
            archive = excluded.archive, extra = excluded.extra, chunk_high = excluded.chunk_high
    )
    INSERT INTO threefold.audit (ns_id, nseq, memory_id, version, action, at)
        SELECT target_ns, nseq, id, version, action, updated_at FROM image;

    IF rechunked IS NOT NULL THEN
        FOREACH one IN ARRAY rechunked LOOP
            DELETE FROM threefold.chunk WHERE ns_id = target_ns AND memory_id = one;
            DELETE FROM threefold.chunk_vector WHERE ns_id = target_ns AND memory_id = one;
        END LOOP;
    END IF;
    IF chunks IS NOT NULL THEN
        SELECT s.space_id, s.name INTO active, active_name
            FROM threefold.embedding_space s WHERE s.state = 'active';
        IF space_of_embeddings <> active_name THEN
            -- Vectors of another model than the active one are no vectors of this store: as after a
            -- failure of the embedder, they are made later.
            embeddings := NULL;
        END IF;
        INSERT INTO threefold.chunk (
            ns_id, memory_id, ordinal, start, stop, language, words, bigrams, space, embedding)
        SELECT
            target_ns, k.memory_id, k.ordinal, k.start, k.stop, k.language, k.words, k.bigrams,
            coalesce(active, 1), substr(embeddings, k.first_byte, k.bytes)
        FROM json_to_recordset(chunks) AS k (
            memory_id uuid, ordinal smallint, start int, stop int, language text, words text,
            bigrams text, first_byte int, bytes int);
    END IF;
    IF deleted IS NOT NULL THEN
        -- Nothing that a deleted memory said stays behind, in no version.
        FOREACH one IN ARRAY deleted LOOP
            DELETE FROM threefold.memory_version WHERE ns_id = target_ns AND memory_id = one;
        END LOOP;
    END IF;
END $$;

REVOKE EXECUTE ON FUNCTION
    threefold.vector_beside(bigint, uuid, smallint, smallint),
    threefold.fill_vectors(bigint, smallint, json, bytea, bigint),
    threefold.write_changes(
        bigint, bigint, bigint, bigint, json, uuid[], int, uuid[], uuid[], json, bytea, text, bytea,
        bytea, jsonb)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    threefold.vector_beside(bigint, uuid, smallint, smallint),
    threefold.write_changes(
        bigint, bigint, bigint, bigint, json, uuid[], int, uuid[], uuid[], json, bytea, text, bytea,
        bytea, jsonb)
    TO threefold_app, threefold_worker;
GRANT EXECUTE ON FUNCTION threefold.fill_vectors(bigint, smallint, json, bytea, bigint)
    TO threefold_worker;
