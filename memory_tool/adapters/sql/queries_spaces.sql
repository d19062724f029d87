-- Embedding spaces, and the vectors of chunks in them. What begins with "the vector of chunk k" is no
-- statement but a part of some, which name it by an @.

-- name: vector
-- The vector of chunk k in the active space: in its own row, but for rows that are older than the
-- latest change of model. Until a space is recorded, it is the first.
CASE k.space
    WHEN coalesce((SELECT a.space_id FROM threefold.embedding_space a WHERE a.state = 'active'), 1)
    THEN k.embedding
    ELSE threefold.vector_beside(
        k.ns_id, k.memory_id, k.ordinal,
        (SELECT a.space_id FROM threefold.embedding_space a WHERE a.state = 'active')) END

-- name: vector_in
-- The vector of chunk k in a named space.
CASE k.space WHEN %(space)s THEN k.embedding
    ELSE threefold.vector_beside(k.ns_id, k.memory_id, k.ordinal, %(space)s::smallint) END

-- name: active_space
-- The recorded embedding space.
SELECT definition FROM threefold.embedding_space WHERE state = 'active'

-- name: active_number
-- The number of the recorded embedding space.
SELECT space_id FROM threefold.embedding_space WHERE state = 'active'

-- name: space_numbered
-- The embedding space of a number.
SELECT definition FROM threefold.embedding_space WHERE space_id = %(space)s

-- name: record_space
-- Record the first space of a store.
INSERT INTO threefold.embedding_space (space_id, name, definition, state)
SELECT 1, %(name)s, %(definition)s::jsonb, 'active'
WHERE NOT EXISTS (SELECT FROM threefold.embedding_space)
ON CONFLICT DO NOTHING

-- name: spaces
-- All spaces that are known.
SELECT space_id, definition, state, embedder FROM threefold.embedding_space ORDER BY space_id

-- name: new_space
-- Fill another space, unless one is on its way.
INSERT INTO threefold.embedding_space (space_id, name, definition, state, embedder)
SELECT nextval('threefold.space_number'), %(name)s, %(definition)s::jsonb, 'filling', %(embedder)s
WHERE NOT EXISTS (SELECT FROM threefold.embedding_space s WHERE s.state IN ('filling', 'building'))
ON CONFLICT DO NOTHING

-- name: build_kept
-- Go on with a space that was left, unless another one is on its way.
UPDATE threefold.embedding_space SET state = 'building', embedder = %(embedder)s
WHERE name = %(name)s AND definition = %(definition)s::jsonb AND state = 'kept'
  AND NOT EXISTS (SELECT FROM threefold.embedding_space s WHERE s.state IN ('filling', 'building'))

-- name: build_space
-- Let indexes follow a space that was filled.
UPDATE threefold.embedding_space SET state = 'building'
WHERE space_id = %(space)s AND state = 'filling'

-- name: leave_active
-- The first half of a switch: the active space is kept, if the other one is built.
UPDATE threefold.embedding_space SET state = 'kept'
WHERE state = 'active' AND EXISTS (
    SELECT FROM threefold.embedding_space s WHERE s.space_id = %(space)s AND s.state = 'building')

-- name: activate
-- The second half.
UPDATE threefold.embedding_space SET state = 'active', switched_by = pg_current_xact_id()
WHERE space_id = %(space)s AND state = 'building'

-- name: outlasted
-- Whether every transaction that ran beside the latest switch is over.
SELECT coalesce(
    (SELECT s.switched_by FROM threefold.embedding_space s WHERE s.state = 'active')
    < pg_snapshot_xmin(pg_current_snapshot()), true)

-- name: close_others
-- Nothing follows or fills a space that is not the active one.
UPDATE threefold.embedding_space SET state = 'kept' WHERE state IN ('filling', 'building')

-- name: forget_spaces
-- Forget every space but the active one, with all that was known of its indexes.
WITH gone AS (
    DELETE FROM threefold.embedding_space WHERE state = 'kept' RETURNING space_id
), of_target AS (
    SELECT ':space' || space_id AS ending FROM gone
), targets AS (
    DELETE FROM threefold.index_target t USING of_target o WHERE t.target LIKE '%%' || o.ending
), marks AS (
    DELETE FROM threefold.index_mark k USING of_target o WHERE k.target LIKE '%%' || o.ending
), progress AS (
    DELETE FROM threefold.index_progress p USING of_target o WHERE p.target LIKE '%%' || o.ending
), letters AS (
    DELETE FROM threefold.dead_letter d USING of_target o WHERE d.target LIKE '%%' || o.ending
)
SELECT count(*) FROM gone

-- name: all_clocks
-- The clock of every namespace.
SELECT ns_id, nseq FROM threefold.ns_clock ORDER BY ns_id

-- name: count_missing
-- Chunks of live rows without a vector in a space, and all of them.
SELECT count(*) FILTER (WHERE {@vector_in} IS NULL), count(*)
FROM threefold.memory m
JOIN threefold.chunk k ON k.ns_id = m.ns_id AND k.memory_id = m.id
WHERE m.state = 'live'

-- name: missing_vectors
-- The next chunks of a namespace, behind one: of each live memory those that lack a vector in a space,
-- and with every row the last chunk that was looked at. A page is looked at however little of it is
-- missing, so that no page reads more than its chunks.
WITH page AS (
    SELECT k.ns_id, k.memory_id, k.ordinal, k.start, k.stop, {@vector_in} IS NULL AS missing
    FROM threefold.chunk k
    WHERE k.ns_id = %(ns_id)s AND (k.memory_id, k.ordinal) > (%(after)s::uuid, %(ordinal)s::smallint)
    ORDER BY k.ns_id, k.memory_id, k.ordinal LIMIT %(bound)s
)
SELECT l.hex, l.ordinal, m.ns_id, m.hex, m.content, m.content_hash,
       gap.ordinals, gap.starts, gap.stops, m.archive
FROM (
    SELECT encode(uuid_send(p.memory_id), 'hex') AS hex, p.ordinal FROM page p
    ORDER BY p.memory_id DESC, p.ordinal DESC LIMIT 1
) l
LEFT JOIN (
    SELECT p.memory_id, array_agg(p.ordinal ORDER BY p.ordinal) AS ordinals,
           array_agg(p.start ORDER BY p.ordinal) AS starts,
           array_agg(p.stop ORDER BY p.ordinal) AS stops
    FROM page p WHERE p.missing GROUP BY p.memory_id
) gap ON true
LEFT JOIN LATERAL (
    SELECT m.ns_id, encode(uuid_send(m.id), 'hex') AS hex, m.content, m.content_hash, m.archive,
           m.state
    FROM threefold.memory m WHERE m.ns_id = %(ns_id)s AND m.id = gap.memory_id OFFSET 0
) m ON m.state = 'live'

-- name: fill_vectors
-- Put down vectors of a namespace; how many.
SELECT threefold.fill_vectors(
    %(ns_id)s, %(space)s::smallint, %(made)s::json, %(embeddings)s, %(stamp)s)

-- name: settle_vectors
-- The next rows of a namespace whose own vector is of another space than the active one get the
-- active one's, and nothing is left beside them. Says behind which id to go on.
WITH active AS (
    SELECT s.space_id FROM threefold.embedding_space s WHERE s.state = 'active'
), page AS (
    SELECT k.memory_id, k.ordinal FROM threefold.chunk k
    WHERE k.ns_id = %(ns_id)s AND k.memory_id >= %(after)s::uuid
      AND k.space <> (SELECT space_id FROM active)
    ORDER BY k.memory_id, k.ordinal LIMIT %(bound)s FOR UPDATE
), beside AS (
    DELETE FROM threefold.chunk_vector v USING page p
    WHERE v.ns_id = %(ns_id)s AND v.memory_id = p.memory_id AND v.ordinal = p.ordinal
    RETURNING v.memory_id, v.ordinal, v.space_id, v.embedding
), settled AS (
    UPDATE threefold.chunk k SET space = a.space_id, embedding = b.embedding
    FROM active a, page p
    LEFT JOIN beside b ON b.memory_id = p.memory_id AND b.ordinal = p.ordinal
         AND b.space_id = (SELECT space_id FROM active)
    WHERE k.ns_id = %(ns_id)s AND k.memory_id = p.memory_id AND k.ordinal = p.ordinal
    RETURNING k.memory_id
)
SELECT memory_id::text FROM settled ORDER BY memory_id DESC LIMIT 1

-- name: drop_beside
-- What is beside the rows of a namespace is of no use any more.
DELETE FROM threefold.chunk_vector v
WHERE v.ns_id = %(ns_id)s
  AND v.space_id <> (SELECT s.space_id FROM threefold.embedding_space s WHERE s.state = 'active')

-- name: sampled_vectors
-- Stored vectors of a space, of live rows taken at random. A share of the pages is read.
SELECT m.ns_id, encode(uuid_send(m.id), 'hex'), k.ordinal, m.vector_nseq, k.embedding
FROM (
    SELECT k.ns_id, k.memory_id, k.ordinal, {@vector_in} AS embedding
    FROM threefold.chunk k TABLESAMPLE SYSTEM (%(share)s)
) k
JOIN threefold.memory m ON m.ns_id = k.ns_id AND m.id = k.memory_id
WHERE m.state = 'live' AND k.embedding IS NOT NULL
ORDER BY random() LIMIT %(bound)s

-- name: size_of_chunks
-- About how many chunks there are.
SELECT greatest(sum(c.reltuples), 0)::bigint FROM pg_class c
JOIN pg_inherits i ON i.inhrelid = c.oid WHERE i.inhparent = 'threefold.chunk'::regclass

-- name: sampled_texts
-- Texts of chunks with their vectors in a space, of live rows taken at random that are not archived.
SELECT substr(m.content, k.start + 1, k.stop - k.start), k.embedding
FROM (
    SELECT k.ns_id, k.memory_id, k.start, k.stop, {@vector_in} AS embedding
    FROM threefold.chunk k TABLESAMPLE SYSTEM (%(share)s)
) k
JOIN threefold.memory m ON m.ns_id = k.ns_id AND m.id = k.memory_id
WHERE m.state = 'live' AND m.archive IS NULL AND k.embedding IS NOT NULL
ORDER BY random() LIMIT %(bound)s

-- name: vectors_of_namespace
-- Stored vectors of a space in one namespace.
SELECT m.ns_id, encode(uuid_send(m.id), 'hex'), k.ordinal, m.vector_nseq, k.embedding
FROM (
    SELECT k.ns_id, k.memory_id, k.ordinal, {@vector_in} AS embedding
    FROM threefold.chunk k WHERE k.ns_id = %(ns_id)s
) k
JOIN threefold.memory m ON m.ns_id = k.ns_id AND m.id = k.memory_id
WHERE m.ns_id = %(ns_id)s AND m.state = 'live' AND k.embedding IS NOT NULL
LIMIT %(bound)s

-- name: unready_targets
-- Indexes of a space that are too far behind to be searched, of all who follow the active space now.
-- What is being built beside those that are read is searched by nobody.
SELECT w.target
FROM (
    SELECT regexp_replace(t.target, ':space[0-9]+$', ':space' || %(space)s) AS target
    FROM threefold.index_target t
    JOIN threefold.embedding_space s ON s.state = 'active' AND t.target LIKE '%%:space' || s.space_id
    WHERE t.seen_at > now() - interval '20 minutes' AND t.target NOT LIKE 'next/%%'
    UNION SELECT %(own)s
) w
WHERE (SELECT coalesce(sum(c.nseq - coalesce(p.applied, 0)), 0)
       FROM threefold.ns_clock c
       LEFT JOIN threefold.index_progress p ON p.ns_id = c.ns_id AND p.target = w.target
       WHERE c.nseq > coalesce(p.applied, 0)) > %(bound)s
ORDER BY w.target

-- name: keep_side
-- Keep a side structure of a space.
INSERT INTO threefold.side_structure (name, space_id, content)
VALUES (%(name)s, %(space)s, %(content)s::jsonb)
ON CONFLICT (name, space_id) DO UPDATE SET content = excluded.content, made_at = now()

-- name: kept_side
-- The side structure of a space.
SELECT content FROM threefold.side_structure WHERE name = %(name)s AND space_id = %(space)s
