-- Where a memory is kept by its age: hot in both indexes, warm without the keyword index, cold with its
-- text in an archive. And how often memories are used, which is half of their age.

-- How many live memories of the namespace are warm or cold. A search that finds none of them here has
-- nothing to look for beside the keyword index, and asks for nothing.
ALTER TABLE threefold.ns_clock ADD COLUMN lowered bigint NOT NULL DEFAULT 0;

-- The files of the archive. What a file says counts only if it reads as was noted in the row of its
-- memory; the sum of the whole file is for backups. A file with lines that no memory names any more
-- waits to be written again since `stale_since`; one that was, lies about since `gone_since`.
CREATE TABLE threefold.archive_file (
    name text NOT NULL,
    ns_id bigint NOT NULL,
    sha256 text NOT NULL,
    bytes bigint NOT NULL,
    memories int NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    stale_since timestamptz,
    gone_since timestamptz,
    PRIMARY KEY (name, ns_id)
);

-- How often a memory was returned, and when last. Beside it, not in it: to count is no change, and a
-- row of the memory table is rewritten as a whole.
CREATE TABLE threefold.memory_use (
    ns_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    uses bigint NOT NULL,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (ns_id, memory_id)
) PARTITION BY HASH (ns_id);

DO $$
DECLARE
    walled text;
BEGIN
    FOR number IN 0 .. 7 LOOP
        EXECUTE format(
            'CREATE TABLE threefold.memory_use_%s PARTITION OF threefold.memory_use'
            ' FOR VALUES WITH (MODULUS 8, REMAINDER %1$s)', number);
        EXECUTE format(
            'ALTER TABLE threefold.memory_use_%s'
            ' ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', number);
    END LOOP;
    FOREACH walled IN ARRAY ARRAY['archive_file', 'memory_use'] LOOP
        EXECUTE format(
            'ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', walled);
        EXECUTE format(
            'CREATE POLICY app_rows ON threefold.%I TO threefold_app'
            ' USING (ns_id + 0 = ANY ((SELECT threefold.allowed_namespaces())::bigint[]))', walled);
        EXECUTE format(
            'CREATE POLICY worker_rows ON threefold.%I TO threefold_worker USING (true)', walled);
    END LOOP;
END $$;
-- A write of the app may bring a text back from the archive, and then a line of it has to go.
GRANT SELECT, UPDATE ON threefold.archive_file TO threefold_app;
GRANT UPDATE ON threefold.chunk TO threefold_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON threefold.memory_use TO threefold_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON threefold.archive_file, threefold.memory_use
    TO threefold_worker;

-- The warm and cold rows of a namespace; what will expire; what waits to be purged.
CREATE INDEX memory_lowered ON threefold.memory (ns_id) WHERE tier <> 'hot' AND state = 'live';
CREATE INDEX memory_expiry ON threefold.memory (expires_at)
    WHERE expires_at IS NOT NULL AND state <> 'deleted';
CREATE INDEX memory_deleted ON threefold.memory (ns_id, nseq) WHERE state = 'deleted';

-- Whoever takes a memory out of the archive, or deletes it, leaves a line behind that has to go, and
-- a count of uses. Triggers, so that no way of deleting can forget it.
CREATE FUNCTION threefold.leave_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threefold.archive_file SET stale_since = now()
        WHERE name = OLD.archive ->> 'file' AND ns_id = OLD.ns_id AND stale_since IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER leave_archive AFTER UPDATE ON threefold.memory FOR EACH ROW
    WHEN (OLD.archive IS NOT NULL AND NEW.archive IS DISTINCT FROM OLD.archive)
    EXECUTE FUNCTION threefold.leave_archive();
CREATE TRIGGER leave_archive_too AFTER DELETE ON threefold.memory FOR EACH ROW
    WHEN (OLD.archive IS NOT NULL) EXECUTE FUNCTION threefold.leave_archive();

CREATE INDEX review_memory ON threefold.review (ns_id, memory_id);
CREATE INDEX relation_to ON threefold.relation (ns_id, to_id);
CREATE FUNCTION threefold.forget_beside() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM threefold.review WHERE ns_id = OLD.ns_id AND memory_id = OLD.id;
    DELETE FROM threefold.relation WHERE ns_id = OLD.ns_id AND from_id = OLD.id;
    DELETE FROM threefold.relation WHERE ns_id = OLD.ns_id AND to_id = OLD.id;
    DELETE FROM threefold.memory_use WHERE ns_id = OLD.ns_id AND memory_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_beside AFTER UPDATE ON threefold.memory FOR EACH ROW
    WHEN (OLD.state <> 'deleted' AND NEW.state = 'deleted')
    EXECUTE FUNCTION threefold.forget_beside();
CREATE TRIGGER forget_beside_too AFTER DELETE ON threefold.memory FOR EACH ROW
    EXECUTE FUNCTION threefold.forget_beside();

-- Replaces tokens of chunks, whose vectors stay.
CREATE FUNCTION threefold.put_tokens(target_ns bigint, tokens json) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM json_to_recordset(tokens) AS t (
        memory_id uuid, ordinal smallint, words text, bigrams text)
    LOOP
        UPDATE threefold.chunk SET words = one.words, bigrams = one.bigrams
            WHERE ns_id = target_ns AND memory_id = one.memory_id AND ordinal = one.ordinal;
    END LOOP;
END $$;

-- Takes back what the archive kept: the text and the old versions. The numbers are the caller's care.
CREATE FUNCTION threefold.bring_back(target_ns bigint, loaded json) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM json_to_recordset(loaded) AS l (id uuid, content text, versions json)
    LOOP
        UPDATE threefold.memory SET content = one.content, tier = 'hot', archive = NULL
            WHERE ns_id = target_ns AND id = one.id;
        INSERT INTO threefold.memory_version (ns_id, memory_id, version, image, replaced_at)
            SELECT target_ns, one.id, (v ->> 'version')::int, v -> 'image',
                   (v ->> 'replaced_at')::timestamptz
            FROM json_array_elements(one.versions) AS v
            ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- The old versions of memories that an archive keeps now.
CREATE FUNCTION threefold.drop_versions(target_ns bigint, ids uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    one uuid;
BEGIN
    FOREACH one IN ARRAY ids LOOP
        DELETE FROM threefold.memory_version WHERE ns_id = target_ns AND memory_id = one;
    END LOOP;
END $$;

-- Live chunks of warm and cold memories that hold at least one of the terms; see chunks_with_terms.
-- Of few such memories all are looked at: the index on tokens knows no tiers, and would find those of
-- a large namespace that are hot as well.
CREATE FUNCTION threefold.lower_chunks_with_terms(terms text[], ids uuid[], bound int)
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
    few CONSTANT int := 2000;
BEGIN
    IF cardinality(ids) <= few
       OR (SELECT sum(c.lowered) FROM threefold.ns_clock c WHERE c.ns_id = ANY (allowed)) <= few
    THEN
        RETURN QUERY
            SELECT m.ns_id, m.id, c.ordinal, m.keyword_nseq, c.words, c.bigrams, m.extra
            FROM threefold.memory m
            CROSS JOIN LATERAL (
                SELECT c.ordinal, c.words, c.bigrams FROM threefold.chunk c
                WHERE c.ns_id = m.ns_id AND c.memory_id = m.id OFFSET 0
            ) c
            WHERE m.ns_id = ANY (allowed) AND (ids IS NULL OR m.id = ANY (ids))
              AND m.tier <> 'hot' AND m.state = 'live'
              AND (m.expires_at IS NULL OR m.expires_at > now())
              AND string_to_array(c.words || ' ' || c.bigrams || ' ' || m.extra, ' ') && wanted
            LIMIT bound;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT found.ns_id, found.memory_id, found.ordinal, m.keyword_nseq, c.words, c.bigrams,
               m.extra
        FROM (
            SELECT inside.ns_id, inside.memory_id, inside.ordinal
            FROM threefold.chunk inside
            WHERE inside.ns_id = ANY (allowed) AND (ids IS NULL OR inside.memory_id = ANY (ids))
              AND string_to_array(inside.words || ' ' || inside.bigrams, ' ') && wanted
            UNION
            SELECT beside.ns_id, beside.id, part.ordinal
            FROM threefold.memory beside
            CROSS JOIN LATERAL (
                SELECT part.ordinal FROM threefold.chunk part
                WHERE part.ns_id = beside.ns_id AND part.memory_id = beside.id OFFSET 0
            ) part
            WHERE beside.ns_id = ANY (allowed) AND (ids IS NULL OR beside.id = ANY (ids))
              AND beside.state = 'live' AND beside.tier <> 'hot' AND beside.extra <> ''
              AND string_to_array(beside.extra, ' ') && wanted
        ) found
        CROSS JOIN LATERAL (
            SELECT m.keyword_nseq, m.extra, m.state, m.tier, m.expires_at FROM threefold.memory m
            WHERE m.ns_id = found.ns_id AND m.id = found.memory_id OFFSET 0
        ) m
        CROSS JOIN LATERAL (
            SELECT c.words, c.bigrams FROM threefold.chunk c
            WHERE c.ns_id = found.ns_id AND c.memory_id = found.memory_id
              AND c.ordinal = found.ordinal
            OFFSET 0
        ) c
        WHERE m.state = 'live' AND m.tier <> 'hot'
          AND (m.expires_at IS NULL OR m.expires_at > now())
        LIMIT bound;
END $$;

GRANT CREATE ON SCHEMA threefold TO threefold_reader;
ALTER FUNCTION threefold.lower_chunks_with_terms(text[], uuid[], int) OWNER TO threefold_reader;
REVOKE CREATE ON SCHEMA threefold FROM threefold_reader;
REVOKE EXECUTE ON FUNCTION threefold.leave_archive(), threefold.forget_beside(),
    threefold.put_tokens(bigint, json), threefold.bring_back(bigint, json),
    threefold.drop_versions(bigint, uuid[]),
    threefold.lower_chunks_with_terms(text[], uuid[], int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threefold.put_tokens(bigint, json), threefold.bring_back(bigint, json),
    threefold.drop_versions(bigint, uuid[]),
    threefold.lower_chunks_with_terms(text[], uuid[], int) TO threefold_app, threefold_worker;
-- Jobs write as everybody does.
GRANT EXECUTE ON FUNCTION
    threefold.ensure_namespace(text, bytea, text, text, text, text[]),
    threefold.open_write(
        text, bytea, text, text, text, text[], bytea, bytea[], bytea[], uuid[])
    TO threefold_worker;

-- One expression of the write of 0006: the audit dated every change by that of the content, which a
-- move between tiers and a vector made later leave alone.
DO $$
DECLARE
    written text := pg_get_functiondef('threefold.write_changes'::regproc);
    dated text := replace(written, 'version, action, updated_at FROM image',
        'version, action, CASE WHEN action IN (''tier'', ''embed'') THEN clock_timestamp()'
        ' ELSE updated_at END FROM image');
BEGIN
    IF dated = written THEN
        RAISE EXCEPTION 'write_changes reads otherwise than it did when this was written';
    END IF;
    EXECUTE dated;
END $$;
