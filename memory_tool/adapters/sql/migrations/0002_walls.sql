-- Row-level security, grants, and the functions that stand in its walls.

-- The namespaces of this transaction. An empty setting is an error, never "nothing to see": a
-- caller that forgot to name them must not mistake silence for an answer.
CREATE FUNCTION threefold.allowed_namespaces() RETURNS bigint[]
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    named text := current_setting('threefold.namespaces', true);
BEGIN
    IF named IS NULL OR named IN ('', '{}') THEN
        RAISE EXCEPTION 'no namespace is named for this transaction'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN named::bigint[];
END $$;

-- Every table that knows namespaces. A worker sees all of them, the app those of its transaction,
-- and the reader's functions those that their bodies name. Without a grant a policy opens nothing.
DO $$
DECLARE
    walled text;
BEGIN
    FOR walled IN
        SELECT table_name FROM information_schema.columns
        WHERE table_schema = 'threefold' AND column_name = 'ns_id'
    LOOP
        EXECUTE format('ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY', walled);
        EXECUTE format('ALTER TABLE threefold.%I FORCE ROW LEVEL SECURITY', walled);
        EXECUTE format(
            'CREATE POLICY app_rows ON threefold.%I TO threefold_app'
            ' USING (ns_id = ANY ((SELECT threefold.allowed_namespaces())::bigint[]))', walled);
        EXECUTE format(
            'CREATE POLICY worker_rows ON threefold.%I TO threefold_worker USING (true)', walled);
        EXECUTE format(
            'CREATE POLICY reader_rows ON threefold.%I FOR SELECT TO threefold_reader USING (true)',
            walled);
    END LOOP;
END $$;

GRANT SELECT ON threefold.ns_clock, threefold.memory, threefold.chunk, threefold.memory_version,
    threefold.relation, threefold.node, threefold.review, threefold.audit, threefold.idempotency,
    threefold.dead_letter, threefold.index_progress, threefold.index_target, threefold.index_mark,
    threefold.term_stat, threefold.store_meta, threefold.embedding_space
    TO threefold_app, threefold_worker;
GRANT UPDATE ON threefold.ns_clock, threefold.memory TO threefold_app;
GRANT INSERT ON threefold.memory, threefold.chunk, threefold.memory_version, threefold.audit,
    threefold.idempotency TO threefold_app;
GRANT DELETE ON threefold.chunk, threefold.memory_version TO threefold_app;
GRANT INSERT, UPDATE, DELETE ON threefold.relation, threefold.node, threefold.review
    TO threefold_app;
GRANT INSERT ON threefold.embedding_space TO threefold_app, threefold_worker;

GRANT INSERT, UPDATE, DELETE ON threefold.ns_clock, threefold.memory, threefold.chunk,
    threefold.memory_version, threefold.relation, threefold.node, threefold.review,
    threefold.audit, threefold.idempotency, threefold.index_target, threefold.index_progress,
    threefold.index_mark, threefold.dead_letter, threefold.term_stat TO threefold_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON threefold.lease, threefold.job, threefold.erase_ledger
    TO threefold_worker;
GRANT SELECT, UPDATE ON threefold.namespace TO threefold_worker;
GRANT UPDATE ON threefold.embedding_space TO threefold_worker;

GRANT SELECT ON threefold.namespace, threefold.ns_clock, threefold.memory, threefold.chunk
    TO threefold_reader;

CREATE POLICY owner_makes_namespaces ON threefold.namespace TO threefold_owner USING (true);
CREATE POLICY owner_makes_clocks ON threefold.ns_clock TO threefold_owner USING (true);

-- The number of a namespace, made when it is new. Whoever retires one locks its clock first.
CREATE FUNCTION threefold.ensure_namespace(
    wanted_address text, wanted_hash bytea, wanted_project text, wanted_user text,
    wanted_agent text, wanted_path text[]
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found bigint;
BEGIN
    SELECT ns_id INTO found FROM threefold.namespace
        WHERE address_hash = wanted_hash AND retired_at IS NULL;
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    INSERT INTO threefold.namespace (address, address_hash, project, "user", agent, path)
        VALUES (wanted_address, wanted_hash, wanted_project, wanted_user, wanted_agent, wanted_path)
        ON CONFLICT (address_hash) WHERE retired_at IS NULL DO NOTHING
        RETURNING ns_id INTO found;
    IF found IS NULL THEN
        SELECT ns_id INTO STRICT found FROM threefold.namespace
            WHERE address_hash = wanted_hash AND retired_at IS NULL;
    ELSE
        INSERT INTO threefold.ns_clock (ns_id) VALUES (found);
    END IF;
    RETURN found;
END $$;

-- The namespaces that carry all the ids named, at most one more than a read may cover.
CREATE FUNCTION threefold.covered_namespaces(
    wanted_project text, wanted_user text, wanted_agent text, wanted_path text[], bound int
) RETURNS TABLE (ns_id bigint, address text, nseq bigint, stamp bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF wanted_path IS NOT NULL THEN
        RETURN QUERY
            SELECT n.ns_id, n.address, c.nseq, c.stamp
            FROM threefold.namespace n JOIN threefold.ns_clock c USING (ns_id)
            WHERE n.retired_at IS NULL
              AND hashtextextended(n.path[1], 0) = hashtextextended(wanted_path[1], 0)
              AND n.path[1:cardinality(wanted_path)] = wanted_path
            LIMIT bound;
    ELSIF wanted_user IS NOT NULL THEN
        RETURN QUERY
            SELECT n.ns_id, n.address, c.nseq, c.stamp
            FROM threefold.namespace n JOIN threefold.ns_clock c USING (ns_id)
            WHERE n.retired_at IS NULL
              AND hashtextextended(n."user", 0) = hashtextextended(wanted_user, 0)
              AND n."user" = wanted_user
              AND (wanted_project IS NULL OR n.project = wanted_project)
              AND (wanted_agent IS NULL OR n.agent = wanted_agent)
            LIMIT bound;
    ELSIF wanted_project IS NOT NULL THEN
        RETURN QUERY
            SELECT n.ns_id, n.address, c.nseq, c.stamp
            FROM threefold.namespace n JOIN threefold.ns_clock c USING (ns_id)
            WHERE n.retired_at IS NULL
              AND hashtextextended(n.project, 0) = hashtextextended(wanted_project, 0)
              AND n.project = wanted_project
              AND (wanted_agent IS NULL OR n.agent = wanted_agent)
            LIMIT bound;
    ELSE
        RETURN QUERY
            SELECT n.ns_id, n.address, c.nseq, c.stamp
            FROM threefold.namespace n JOIN threefold.ns_clock c USING (ns_id)
            WHERE n.retired_at IS NULL
              AND hashtextextended(n.agent, 0) = hashtextextended(wanted_agent, 0)
              AND n.agent = wanted_agent
            LIMIT bound;
    END IF;
END $$;

-- The namespaces whose addresses have these hashes.
CREATE FUNCTION threefold.named_namespaces(hashes bytea[])
RETURNS TABLE (ns_id bigint, address text, nseq bigint, stamp bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
        SELECT n.ns_id, n.address, c.nseq, c.stamp
        FROM threefold.namespace n JOIN threefold.ns_clock c USING (ns_id)
        WHERE n.retired_at IS NULL AND n.address_hash = ANY (hashes);
END $$;

-- Neither && nor @> is leakproof, so behind row-level security they can't use their indexes. In the
-- next two functions, which run as the reader, the namespace condition stands in the body. Their
-- plans are made for the values at hand: how rare a term or a namespace is decides which index pays.
-- A GIN index answers by a bitmap only.

-- Live chunks that hold at least one of the terms, in their text or beside it.
CREATE FUNCTION threefold.chunks_with_terms(terms text[], bound int)
RETURNS TABLE (ns_id bigint, memory_id uuid, ordinal smallint, keyword_nseq bigint, words text,
               bigrams text, extra text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on
AS $$
DECLARE
    allowed bigint[] := threefold.allowed_namespaces();
    -- An empty half of the indexed text leaves an empty token.
    wanted text[] := array_remove(terms, '');
BEGIN
    RETURN QUERY
        SELECT c.ns_id, c.memory_id, c.ordinal, m.keyword_nseq, c.words, c.bigrams, m.extra
        FROM (
            SELECT inside.ns_id, inside.memory_id, inside.ordinal
            FROM threefold.chunk inside
            WHERE inside.ns_id = ANY (allowed)
              AND string_to_array(inside.words || ' ' || inside.bigrams, ' ') && wanted
            UNION
            SELECT beside.ns_id, beside.id, part.ordinal
            FROM threefold.memory beside
            JOIN threefold.chunk part ON part.ns_id = beside.ns_id AND part.memory_id = beside.id
            WHERE beside.ns_id = ANY (allowed) AND beside.state = 'live' AND beside.extra <> ''
              AND string_to_array(beside.extra, ' ') && wanted
        ) found
        JOIN threefold.chunk c USING (ns_id, memory_id, ordinal)
        JOIN threefold.memory m ON m.ns_id = c.ns_id AND m.id = c.memory_id
        WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
        LIMIT bound;
END $$;

-- Live memories whose metadata holds all of these names with these values.
CREATE FUNCTION threefold.memories_with_metadata(wanted jsonb)
RETURNS TABLE (ns_id bigint, id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_bitmapscan = on
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

-- Figures without content, for stats and health.
CREATE FUNCTION threefold.store_counts() RETURNS TABLE (name text, figure bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'namespaces', count(*) FROM threefold.namespace WHERE retired_at IS NULL
    UNION ALL
    SELECT 'memories', count(*) FROM threefold.memory
        WHERE state = 'live' AND (expires_at IS NULL OR expires_at > now());
$$;

GRANT CREATE ON SCHEMA threefold TO threefold_reader;
ALTER FUNCTION threefold.covered_namespaces(text, text, text, text[], int)
    OWNER TO threefold_reader;
ALTER FUNCTION threefold.named_namespaces(bytea[]) OWNER TO threefold_reader;
ALTER FUNCTION threefold.chunks_with_terms(text[], int) OWNER TO threefold_reader;
ALTER FUNCTION threefold.memories_with_metadata(jsonb) OWNER TO threefold_reader;
ALTER FUNCTION threefold.store_counts() OWNER TO threefold_reader;
REVOKE CREATE ON SCHEMA threefold FROM threefold_reader;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA threefold FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA threefold TO threefold_app, threefold_worker;
GRANT EXECUTE ON FUNCTION threefold.allowed_namespaces() TO threefold_reader;
