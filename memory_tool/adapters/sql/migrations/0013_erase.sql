-- Erasing: what a deletion leaves behind for appliers to see goes as well, or loses its name.

-- A line of the ledger is known by a name that the file outside the database holds too.
ALTER TABLE threefold.erase_ledger
    ADD COLUMN name uuid NOT NULL DEFAULT gen_random_uuid(),
    -- When every place was seen to be done; until then the next order goes on with it.
    ADD COLUMN finished_at timestamptz,
    ADD UNIQUE (ns_id, name);

-- Statistics quote the commonest and the bounding values, and of a table that became empty they stay
-- for ever. No plan of ours depends on those of what people say: rows are found by keys and by indexes
-- on tokens and metadata, whatever is believed of their number.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT * FROM (VALUES
            ('memory', ARRAY['content', 'key', 'tags', 'source', 'metadata', 'run_id',
                             'conversation_id', 'turn_role', 'turn_name', 'extra', 'archive']),
            ('chunk', ARRAY['words', 'bigrams', 'embedding']),
            ('chunk_vector', ARRAY['embedding']),
            ('memory_version', ARRAY['image']),
            ('idempotency', ARRAY['response']),
            ('namespace', ARRAY['address', 'project', 'user', 'agent', 'path']),
            ('review', ARRAY['proposal']),
            ('relation', ARRAY['properties']),
            ('node', ARRAY['name', 'properties']),
            ('term_stat', ARRAY['term'])
        ) AS said (name, columns)
    LOOP
        FOR column_number IN 1 .. cardinality(one.columns) LOOP
            EXECUTE format('ALTER TABLE threefold.%I ALTER COLUMN %I SET STATISTICS 0',
                one.name, one.columns[column_number]);
        END LOOP;
    END LOOP;
    -- Of an index on an expression, each part by itself.
    FOR one IN
        SELECT c.oid::regclass AS name, a.attnum AS place
        FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_class t ON t.oid = i.indrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'threefold'
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE i.indkey[a.attnum - 1] = 0 AND t.relname ~ '^(memory|chunk)'
    LOOP
        EXECUTE format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS 0', one.name, one.place);
    END LOOP;
END $$;

-- Erases memories of one namespace, all of them where none is named: rows become tombstones without
-- content under fresh numbers, and all that hangs on them goes. Says how many rows said something.
-- At most `bound` rows are taken at once, so that no lock is held for long; call it until it says 0.
CREATE FUNCTION threefold.erase_memories(target_ns bigint, wanted uuid[], bound int)
RETURNS TABLE (erased bigint, versions bigint, chunks bigint)
LANGUAGE plpgsql AS $$
DECLARE
    base bigint;
    chosen uuid[];
BEGIN
    SELECT c.nseq INTO base FROM threefold.ns_clock c WHERE c.ns_id = target_ns FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 0::bigint, 0::bigint, 0::bigint;
        RETURN;
    END IF;
    SELECT array_agg(picked.id) INTO chosen FROM (
        SELECT m.id FROM threefold.memory m
        WHERE m.ns_id = target_ns AND m.state <> 'deleted'
          AND (wanted IS NULL OR m.id = ANY (wanted))
        LIMIT bound
    ) picked;
    -- What hangs on them goes, also where they were deleted before and are tombstones.
    DELETE FROM threefold.relation r
        WHERE r.ns_id = target_ns
          AND (wanted IS NULL OR r.from_id = ANY (wanted) OR r.to_id = ANY (wanted));
    DELETE FROM threefold.review r
        WHERE r.ns_id = target_ns AND (wanted IS NULL OR r.memory_id = ANY (wanted));
    erased := coalesce(cardinality(chosen), 0);
    IF erased = 0 THEN
        RETURN QUERY SELECT 0::bigint, 0::bigint, 0::bigint;
        RETURN;
    END IF;

    UPDATE threefold.ns_clock SET nseq = base + erased,
        lowered = greatest(0, lowered - (
            SELECT count(*) FROM threefold.memory m
            WHERE m.ns_id = target_ns AND m.id = ANY (chosen)
              AND m.state = 'live' AND m.tier <> 'hot')),
        stamp = ('x' || substr(md5(gen_random_uuid()::text), 1, 16))::bit(64)::bigint,
        changed_at = date_bin('1 minute', clock_timestamp(), 'epoch')
    WHERE ns_id = target_ns;
    WITH numbered AS (
        SELECT one.id, base + one.place AS number FROM unnest(chosen) WITH ORDINALITY AS one (id, place)
    ), gone AS (
        UPDATE threefold.memory m SET
            nseq = n.number, vector_nseq = n.number, keyword_nseq = n.number, state = 'deleted',
            content = '', content_hash = '', dedup_hash = NULL, key = NULL, key_hash = NULL,
            confidence = 1, importance = NULL, pinned = false, tags = '[]', source = '{}',
            metadata = '{}', updated_at = clock_timestamp(), occurred_at = NULL, expires_at = NULL,
            verified_at = NULL, run_id = NULL, conversation_id = NULL, turn_position = NULL,
            turn_role = NULL, turn_name = NULL, tier = 'hot', extra = '', archive = NULL
        FROM numbered n WHERE m.ns_id = target_ns AND m.id = n.id
        RETURNING m.id, m.version, n.number
    )
    INSERT INTO threefold.audit (ns_id, nseq, memory_id, version, action, at)
        SELECT target_ns, g.number, g.id, g.version, 'erase', clock_timestamp() FROM gone g;
    DELETE FROM threefold.chunk_vector v
        WHERE v.ns_id = target_ns AND v.memory_id = ANY (chosen);
    WITH gone AS (
        DELETE FROM threefold.memory_version v
        WHERE v.ns_id = target_ns AND v.memory_id = ANY (chosen) RETURNING 1
    ) SELECT count(*) INTO versions FROM gone;
    WITH gone AS (
        DELETE FROM threefold.chunk k
        WHERE k.ns_id = target_ns AND k.memory_id = ANY (chosen) RETURNING 1
    ) SELECT count(*) INTO chunks FROM gone;
    RETURN NEXT;
END $$;

-- Takes a namespace's name from it, before its memories are erased: so nobody can add to it any more.
-- Whoever adds under that name later begins a new one. Its clock and its tombstones stay, for
-- appliers have to pass them.
CREATE FUNCTION threefold.forget_namespace(target_ns bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM threefold.ns_clock c WHERE c.ns_id = target_ns FOR UPDATE;
    DELETE FROM threefold.node n WHERE n.ns_id = target_ns;
    DELETE FROM threefold.review r WHERE r.ns_id = target_ns;
    DELETE FROM threefold.relation r WHERE r.ns_id = target_ns;
    DELETE FROM threefold.idempotency i WHERE i.ns_id = target_ns;
    UPDATE threefold.namespace SET
        retired_at = coalesce(retired_at, clock_timestamp()), address = '',
        address_hash = sha256(uuid_send(gen_random_uuid())),
        project = NULL, "user" = NULL, agent = NULL, path = NULL
    WHERE ns_id = target_ns;
END $$;

REVOKE EXECUTE ON FUNCTION threefold.erase_memories(bigint, uuid[], int),
    threefold.forget_namespace(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threefold.erase_memories(bigint, uuid[], int),
    threefold.forget_namespace(bigint) TO threefold_worker;
