-- One commit is two round trips: open_write locks the namespace and tells what a plan needs,
-- write_changes puts the plan down. Both run as the caller, behind row-level security.

-- Makes the namespace if it is new, names it for the transaction and locks it. Tells its number and
-- clock, the answer already given under this key, and the rows that the plan has to see, as JSON:
-- one record without a row, and one for each row.
CREATE FUNCTION threefold.open_write(
    wanted_address text, wanted_hash bytea, wanted_project text, wanted_user text,
    wanted_agent text, wanted_path text[], wanted_key bytea,
    text_hashes bytea[], key_hashes bytea[], ids uuid[]
) RETURNS TABLE (ns_id bigint, nseq bigint, now timestamptz, request_hash bytea, response jsonb,
                 kept jsonb)
-- A client that froze in a transaction is cut off after 5 s.
LANGUAGE plpgsql
SET lock_timeout = '10s' SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off AS $$
DECLARE
    again bigint := threefold.ensure_namespace(
        wanted_address, wanted_hash, wanted_project, wanted_user, wanted_agent, wanted_path);
BEGIN
    LOOP
        ns_id := again;
        PERFORM set_config('threefold.namespaces', '{' || ns_id || '}', true);
        SELECT c.nseq INTO STRICT nseq FROM threefold.ns_clock c
            WHERE c.ns_id = open_write.ns_id FOR UPDATE;
        -- It may have been retired, and its name given to another, while we waited for the lock.
        again := threefold.ensure_namespace(
            wanted_address, wanted_hash, wanted_project, wanted_user, wanted_agent, wanted_path);
        EXIT WHEN again = ns_id;
    END LOOP;
    SELECT i.request_hash, i.response INTO request_hash, response FROM threefold.idempotency i
        WHERE i.ns_id = open_write.ns_id AND i.key_hash = wanted_key;
    now := clock_timestamp();
    RETURN NEXT;
    -- The wall names the namespace; saying it twice would make the planner believe that a namespace
    -- has no rows, and read all of it. A subquery with OFFSET is run for each element of the array.
    IF text_hashes IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(text_hashes) AS wanted (hash) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m WHERE m.dedup_hash = wanted.hash OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
    IF key_hashes IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(key_hashes) AS wanted (hash) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m WHERE m.key_hash = wanted.hash OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
    IF ids IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(ids) AS wanted (id) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m WHERE m.id = wanted.id OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
END $$;

-- Puts down row images that take the numbers above base_number, in order, with their chunks,
-- versions and audit. A retired twin stands before the row that replaces it.
CREATE FUNCTION threefold.write_changes(
    target_ns bigint, base_number bigint, last_number bigint, new_stamp bigint, changed json,
    archived uuid[], versions_kept int, rechunked uuid[], deleted uuid[], chunks json,
    embeddings bytea, receipt_key bytea, receipt_hash bytea, receipt jsonb
) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off AS $$
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
        WITH image AS (
            INSERT INTO threefold.memory_version (ns_id, memory_id, version, image, replaced_at)
            SELECT old.ns_id, old.id, old.version, to_jsonb(old), clock_timestamp()
            FROM unnest(archived) AS wanted (id) CROSS JOIN LATERAL
                (SELECT * FROM threefold.memory m WHERE m.id = wanted.id OFFSET 0) old
            RETURNING memory_id, version
        )
        DELETE FROM threefold.memory_version v USING image i
            WHERE v.ns_id = target_ns AND v.memory_id = i.memory_id
              AND v.version <= i.version - versions_kept;
    END IF;

    WITH image AS MATERIALIZED (
        SELECT * FROM json_to_recordset(changed) AS c (
            action text, id uuid, nseq bigint, vector_nseq bigint, keyword_nseq bigint, state text,
            version int, content text, content_hash text, dedup_hash text, key text, key_hash text,
            type text, confidence double precision, importance smallint, pinned boolean, tags jsonb,
            source jsonb, metadata jsonb, created_at timestamptz, updated_at timestamptz,
            occurred_at timestamptz, expires_at timestamptz, verified_at timestamptz, run_id text,
            conversation_id text, turn_position int, turn_role text, turn_name text, tier text,
            extra text, chunk_high int)
    ), written AS (
        INSERT INTO threefold.memory (
            ns_id, id, nseq, vector_nseq, keyword_nseq, state, version, content, content_hash,
            dedup_hash, key, key_hash, type, confidence, importance, pinned, tags, source, metadata,
            created_at, updated_at, occurred_at, expires_at, verified_at, run_id, conversation_id,
            turn_position, turn_role, turn_name, tier, extra, chunk_high)
        SELECT
            target_ns, id, nseq, vector_nseq, keyword_nseq, state, version, content,
            decode(content_hash, 'hex'), decode(dedup_hash, 'hex'), key, decode(key_hash, 'hex'),
            type, confidence, importance, pinned, tags, source, metadata, created_at, updated_at,
            occurred_at, expires_at, verified_at, run_id, conversation_id, turn_position, turn_role,
            turn_name, tier, extra, chunk_high
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
            extra = excluded.extra, chunk_high = excluded.chunk_high
    )
    INSERT INTO threefold.audit (ns_id, nseq, memory_id, version, action, at)
        SELECT target_ns, nseq, id, version, action, updated_at FROM image;

    IF rechunked IS NOT NULL THEN
        DELETE FROM threefold.chunk WHERE ns_id = target_ns AND memory_id = ANY (rechunked);
    END IF;
    IF chunks IS NOT NULL THEN
        INSERT INTO threefold.chunk (
            ns_id, memory_id, ordinal, start, stop, language, words, bigrams, embedding)
        SELECT
            target_ns, k.memory_id, k.ordinal, k.start, k.stop, k.language, k.words, k.bigrams,
            substr(embeddings, k.first_byte, k.bytes)
        FROM json_to_recordset(chunks) AS k (
            memory_id uuid, ordinal smallint, start int, stop int, language text, words text,
            bigrams text, first_byte int, bytes int);
    END IF;
    IF deleted IS NOT NULL THEN
        -- Nothing that a deleted memory said stays behind, in no version.
        DELETE FROM threefold.memory_version
            WHERE ns_id = target_ns AND memory_id = ANY (deleted);
    END IF;
END $$;

REVOKE EXECUTE ON FUNCTION threefold.open_write(
    text, bytea, text, text, text, text[], bytea, bytea[], bytea[], uuid[])
    FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION threefold.write_changes(
    bigint, bigint, bigint, bigint, json, uuid[], int, uuid[], uuid[], json, bytea, bytea, bytea,
    jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threefold.open_write(
    text, bytea, text, text, text, text[], bytea, bytea[], bytea[], uuid[])
    TO threefold_app;
GRANT EXECUTE ON FUNCTION threefold.write_changes(
    bigint, bigint, bigint, bigint, json, uuid[], int, uuid[], uuid[], json, bytea, bytea, bytea,
    jsonb) TO threefold_app;
