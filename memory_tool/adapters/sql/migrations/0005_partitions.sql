-- The tables that every write makes longer are parted by a hash of their namespace. A partition has
-- indexes of its own, is vacuumed and analysed by itself, and may be given a disk of its own. What
-- grows with the namespaces only (clocks, progress), or is empty today (relations), stays whole.
--
-- A statement that names its namespaces reads their partitions and no others, if it is careful:
--
-- * A plan that is kept can leave a partition out only where the namespace is compared with one
--   value, a parameter or the outer side of a nested loop. With ns_id = ANY (an array) it can't. So
--   namespaces are taken apart and looked up one by one, in LATERAL subqueries with OFFSET 0.
-- * Keys of such a table hold the namespace, so none is left that promises an id to be unique in the
--   whole store. Ids are random, which is the promise now; a row is named by namespace and id.
--
-- Eight partitions: each costs a search some microseconds, since a nested loop winds all of them
-- back at every turn, and a transaction that makes its plans a dozen locks more.
--
-- The rows are copied, so the tables take their room on the disk twice until the commit.

LOCK TABLE threefold.memory, threefold.chunk, threefold.memory_version, threefold.audit,
    threefold.idempotency IN ACCESS EXCLUSIVE MODE;

DO $$
DECLARE
    partitions CONSTANT int := 8;
    parted text;
    columns text;
BEGIN
    FOREACH parted IN ARRAY ARRAY['memory', 'chunk', 'memory_version', 'audit', 'idempotency'] LOOP
        EXECUTE format('ALTER TABLE threefold.%I RENAME TO %I', parted, 'whole_' || parted);
        EXECUTE format(
            'CREATE TABLE threefold.%I (LIKE threefold.%I INCLUDING ALL EXCLUDING INDEXES)'
            ' PARTITION BY HASH (ns_id)', parted, 'whole_' || parted);
        FOR number IN 0 .. partitions - 1 LOOP
            EXECUTE format(
                'CREATE TABLE threefold.%I PARTITION OF threefold.%I'
                ' FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                parted || '_' || number, parted, partitions, number);
            -- The way in is the whole table. Nobody is granted a partition, and whom an operator
            -- grants one all the same, its wall without a door shows nothing.
            EXECUTE format(
                'ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
                parted || '_' || number);
        END LOOP;
        -- The owner, who copies, is kept out by the old wall as well.
        EXECUTE format('ALTER TABLE threefold.%I NO FORCE ROW LEVEL SECURITY', 'whole_' || parted);
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
            FROM pg_attribute
            WHERE attrelid = format('threefold.%I', parted)::regclass
              AND attnum > 0 AND attgenerated = '';
        EXECUTE format('INSERT INTO threefold.%I (%s) SELECT %2$s FROM threefold.%3$I',
            parted, columns, 'whole_' || parted);
        EXECUTE format('DROP TABLE threefold.%I', 'whole_' || parted);
    END LOOP;
END $$;

-- Of an empty table a planner believes that every index of a namespace serves to look up an id, and
-- the plan that it makes is kept while the table grows. So all but the key are kept out of its reach:
-- the log by nseq > 0, which is true of every row but has to be asked for; the listing by statements
-- that ask only afterwards whether what they found is live.
--
-- All that an applier reads: what changed above a number.
CREATE UNIQUE INDEX memory_log ON threefold.memory (ns_id, nseq) WHERE nseq > 0;
-- The id first: so an array of ids is looked up by the index, whatever the planner knows.
ALTER TABLE threefold.memory ADD PRIMARY KEY (id, ns_id);
CREATE UNIQUE INDEX memory_dedup ON threefold.memory (ns_id, dedup_hash)
    WHERE dedup_hash IS NOT NULL;
CREATE UNIQUE INDEX memory_key ON threefold.memory (ns_id, key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX memory_listing ON threefold.memory (ns_id, event_time DESC, id)
    WHERE state = 'live';
CREATE INDEX memory_turn ON threefold.memory (ns_id, conversation_id, turn_position)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX memory_metadata ON threefold.memory USING gin (metadata jsonb_path_ops)
    WHERE state = 'live' AND metadata <> '{}';
CREATE INDEX memory_extra ON threefold.memory USING gin (string_to_array(extra, ' '))
    WHERE state = 'live' AND extra <> '';

ALTER TABLE threefold.chunk ADD PRIMARY KEY (ns_id, memory_id, ordinal);
-- Keyword search without a keyword index.
CREATE INDEX chunk_tokens ON threefold.chunk
    USING gin (string_to_array(words || ' ' || bigrams, ' '));
-- What the embedder still owes.
CREATE INDEX chunk_without_vector ON threefold.chunk (ns_id, memory_id) WHERE embedding IS NULL;

ALTER TABLE threefold.memory_version ADD PRIMARY KEY (ns_id, memory_id, version);
ALTER TABLE threefold.audit ADD PRIMARY KEY (ns_id, nseq);
ALTER TABLE threefold.idempotency ADD PRIMARY KEY (ns_id, key_hash);
CREATE INDEX idempotency_age ON threefold.idempotency (created_at);

-- The walls of 0002 around the tables as wholes. The app's no longer offers itself to an index, here
-- and around every other table: an index that is entered by all namespaces of a scope is entered a
-- thousand times for each row of a wide one.
DO $$
DECLARE
    walled text;
BEGIN
    FOREACH walled IN ARRAY ARRAY['memory', 'chunk', 'memory_version', 'audit', 'idempotency'] LOOP
        EXECUTE format(
            'ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', walled);
        EXECUTE format('CREATE POLICY app_rows ON threefold.%I TO threefold_app USING (true)', walled);
        EXECUTE format(
            'CREATE POLICY worker_rows ON threefold.%I TO threefold_worker USING (true)', walled);
        EXECUTE format(
            'CREATE POLICY reader_rows ON threefold.%I FOR SELECT TO threefold_reader USING (true)',
            walled);
    END LOOP;
    FOR walled IN
        SELECT tablename FROM pg_policies WHERE schemaname = 'threefold' AND policyname = 'app_rows'
    LOOP
        EXECUTE format(
            'ALTER POLICY app_rows ON threefold.%I'
            ' USING (ns_id + 0 = ANY ((SELECT threefold.allowed_namespaces())::bigint[]))', walled);
    END LOOP;
END $$;

GRANT SELECT ON threefold.memory, threefold.chunk, threefold.memory_version, threefold.audit,
    threefold.idempotency TO threefold_app, threefold_worker;
GRANT UPDATE ON threefold.memory TO threefold_app;
GRANT INSERT ON threefold.memory, threefold.chunk, threefold.memory_version, threefold.audit,
    threefold.idempotency TO threefold_app;
GRANT DELETE ON threefold.chunk, threefold.memory_version TO threefold_app;
GRANT INSERT, UPDATE, DELETE ON threefold.memory, threefold.chunk, threefold.memory_version,
    threefold.audit, threefold.idempotency TO threefold_worker;
GRANT SELECT ON threefold.memory, threefold.chunk TO threefold_reader;

-- The two search functions of 0002. Their plans are made for the values at hand, so that an array of
-- namespaces is known when partitions are left out; what is found is looked up by its key.

-- Live chunks that hold at least one of the terms, in their text or beside it.
CREATE OR REPLACE FUNCTION threefold.chunks_with_terms(terms text[], bound int)
RETURNS TABLE (ns_id bigint, memory_id uuid, ordinal smallint, keyword_nseq bigint, words text,
               bigrams text, extra text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on
AS $$
DECLARE
    allowed bigint[] := threefold.allowed_namespaces();
    -- An empty half of the indexed text leaves an empty token.
    wanted text[] := array_remove(terms, '');
BEGIN
    RETURN QUERY
        SELECT found.ns_id, found.memory_id, found.ordinal, m.keyword_nseq, c.words, c.bigrams,
               m.extra
        FROM (
            SELECT inside.ns_id, inside.memory_id, inside.ordinal
            FROM threefold.chunk inside
            WHERE inside.ns_id = ANY (allowed)
              AND string_to_array(inside.words || ' ' || inside.bigrams, ' ') && wanted
            UNION
            SELECT beside.ns_id, beside.id, part.ordinal
            FROM threefold.memory beside
            CROSS JOIN LATERAL (
                SELECT part.ordinal FROM threefold.chunk part
                WHERE part.ns_id = beside.ns_id AND part.memory_id = beside.id OFFSET 0
            ) part
            WHERE beside.ns_id = ANY (allowed) AND beside.state = 'live' AND beside.extra <> ''
              AND string_to_array(beside.extra, ' ') && wanted
        ) found
        CROSS JOIN LATERAL (
            SELECT c.words, c.bigrams FROM threefold.chunk c
            WHERE c.ns_id = found.ns_id AND c.memory_id = found.memory_id
              AND c.ordinal = found.ordinal
            OFFSET 0
        ) c
        CROSS JOIN LATERAL (
            SELECT m.keyword_nseq, m.extra, m.state, m.expires_at FROM threefold.memory m
            WHERE m.ns_id = found.ns_id AND m.id = found.memory_id OFFSET 0
        ) m
        WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
        LIMIT bound;
END $$;

-- Live memories whose metadata holds all of these names with these values.
CREATE OR REPLACE FUNCTION threefold.memories_with_metadata(wanted jsonb)
RETURNS TABLE (ns_id bigint, id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on
AS $$
DECLARE
    allowed bigint[] := threefold.allowed_namespaces();
BEGIN
    RETURN QUERY
        SELECT m.ns_id, m.id
        FROM threefold.memory m
        WHERE m.ns_id = ANY (allowed) AND m.state = 'live' AND m.metadata <> '{}'
          AND m.metadata @> wanted;
END $$;

-- The two writing functions of 0003, where every statement names its namespace now. Rows that go are
-- named one by one: of an empty table the planner of PostgreSQL 15 believes that looking up the ids of
-- an array costs more than reading the namespace and comparing, and keeps to it.

-- Makes the namespace if it is new, names it for the transaction and locks it. Tells its number and
-- clock, the answer already given under this key, and the rows that the plan has to see, as JSON:
-- one record without a row, and one for each row.
CREATE OR REPLACE FUNCTION threefold.open_write(
    wanted_address text, wanted_hash bytea, wanted_project text, wanted_user text,
    wanted_agent text, wanted_path text[], wanted_key bytea,
    text_hashes bytea[], key_hashes bytea[], ids uuid[]
) RETURNS TABLE (ns_id bigint, nseq bigint, now timestamptz, request_hash bytea, response jsonb,
                 kept jsonb)
-- A client that froze in a transaction is cut off after 5 s.
LANGUAGE plpgsql
SET lock_timeout = '10s'
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
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
    -- A subquery with OFFSET is run for each element of the array.
    IF text_hashes IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(text_hashes) AS wanted (hash) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m
             WHERE m.ns_id = open_write.ns_id AND m.dedup_hash = wanted.hash OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
    IF key_hashes IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(key_hashes) AS wanted (hash) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m
             WHERE m.ns_id = open_write.ns_id AND m.key_hash = wanted.hash OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
    IF ids IS NOT NULL THEN
        FOR kept IN SELECT to_jsonb(old) FROM unnest(ids) AS wanted (id) CROSS JOIN LATERAL
            (SELECT * FROM threefold.memory m
             WHERE m.ns_id = open_write.ns_id AND m.id = wanted.id OFFSET 0) old
        LOOP RETURN NEXT; END LOOP;
    END IF;
END $$;

-- Puts down row images that take the numbers above base_number, in order, with their chunks,
-- versions and audit. A retired twin stands before the row that replaces it.
CREATE OR REPLACE FUNCTION threefold.write_changes(
    target_ns bigint, base_number bigint, last_number bigint, new_stamp bigint, changed json,
    archived uuid[], versions_kept int, rechunked uuid[], deleted uuid[], chunks json,
    embeddings bytea, receipt_key bytea, receipt_hash bytea, receipt jsonb
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    one uuid;
    newest int;
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
        FOREACH one IN ARRAY rechunked LOOP
            DELETE FROM threefold.chunk WHERE ns_id = target_ns AND memory_id = one;
        END LOOP;
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
        FOREACH one IN ARRAY deleted LOOP
            DELETE FROM threefold.memory_version WHERE ns_id = target_ns AND memory_id = one;
        END LOOP;
    END IF;
END $$;

