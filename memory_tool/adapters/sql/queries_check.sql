-- What an index has to hold, for whoever compares. Every statement reads in one snapshot.

-- name: settled_fingerprints
-- Of each namespace the number of entries that a target at these clocks has to hold, and the
-- exclusive or of their digests: memory_tool.inventory.entry_digest says the same.
SELECT m.ns_id, count(*), bit_xor(
    ('x' || substr(md5(encode(uuid_send(m.id), 'hex') || ':' || k.ordinal || ':' || {version}), 1, 16))
    ::bit(64)::bigint)
FROM unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied)
JOIN threefold.memory m ON m.ns_id = s.ns_id
JOIN threefold.chunk k ON k.ns_id = m.ns_id AND k.memory_id = m.id
WHERE {row_held} AND {chunk_held} AND m.{number} <= s.applied
  AND NOT EXISTS (
      SELECT FROM threefold.dead_letter d
      WHERE d.target = %(target)s AND d.ns_id = m.ns_id AND d.memory_id = m.id)
GROUP BY m.ns_id

-- name: moving_rows
-- Rows above the clocks, in whatever state, and those that the target can't take. No row's own number
-- lies above nseq, whose index is read.
SELECT m.ns_id, m.hex
FROM threefold.ns_clock c
LEFT JOIN unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied) USING (ns_id)
CROSS JOIN LATERAL (
    SELECT m.ns_id, encode(uuid_send(m.id), 'hex') AS hex FROM threefold.memory m
    WHERE m.ns_id = c.ns_id AND m.nseq > coalesce(s.applied, 0) AND m.nseq > 0
      AND m.{number} > coalesce(s.applied, 0)
    OFFSET 0
) m
UNION ALL
SELECT d.ns_id, encode(uuid_send(d.memory_id), 'hex') FROM threefold.dead_letter d
WHERE d.target = %(target)s

-- name: settled_entries
-- The entries of some namespaces, by namespace and memory. Joins by LATERAL keep the order.
SELECT s.ns_id, m.hex, k.ordinal, k.version
FROM unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied)
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.{number}, m.extra
    FROM threefold.memory m
    WHERE m.ns_id = s.ns_id AND {row_held} AND m.{number} <= s.applied
      AND NOT EXISTS (
          SELECT FROM threefold.dead_letter d
          WHERE d.target = %(target)s AND d.ns_id = m.ns_id AND d.memory_id = m.id)
    ORDER BY m.id OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT k.ordinal, {version} AS version FROM threefold.chunk k
    WHERE k.ns_id = m.ns_id AND k.memory_id = m.id AND {chunk_held}
    ORDER BY k.ordinal OFFSET 0
) k

-- name: clocks_and_purged
-- Of each namespace its clock and the highest number purged.
SELECT ns_id, nseq, purged FROM threefold.ns_clock

-- name: noted_progress
-- How far a target was noted to have come.
SELECT ns_id, applied FROM threefold.index_progress WHERE target = %(target)s

-- name: standings
-- Every row with one of these ids, in whichever namespace: the key begins with the id.
SELECT encode(uuid_send(m.id), 'hex'), m.ns_id, m.state, m.{number}
FROM unnest(%(ids)s::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT m.id, m.ns_id, m.state, m.{number} FROM threefold.memory m WHERE m.id = wanted.id OFFSET 0
) m

-- name: specimens
-- Settled chunks of each namespace in the order of their ids, from one id on and round to it again.
SELECT s.ns_id, m.hex, k.ordinal, m.number, {columns}
FROM unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[], %(bounds)s::int[]) AS s (ns_id, applied, bound)
CROSS JOIN LATERAL (
    SELECT k.* FROM (
        (SELECT k.*, false AS round FROM threefold.chunk k
         WHERE k.ns_id = s.ns_id AND k.memory_id >= %(start)s::uuid
         ORDER BY k.memory_id, k.ordinal LIMIT s.bound)
        UNION ALL
        (SELECT k.*, true AS round FROM threefold.chunk k
         WHERE k.ns_id = s.ns_id AND k.memory_id < %(start)s::uuid
         ORDER BY k.memory_id, k.ordinal LIMIT s.bound)
    ) k
    ORDER BY k.round, k.memory_id, k.ordinal LIMIT s.bound
) k
CROSS JOIN LATERAL (
    SELECT m.state, m.tier, m.extra, encode(uuid_send(m.id), 'hex') AS hex, m.{number} AS number
    FROM threefold.memory m WHERE m.id = k.memory_id AND m.ns_id = s.ns_id OFFSET 0
) m
WHERE {row_held} AND {chunk_held} AND m.number <= s.applied
  AND NOT EXISTS (
      SELECT FROM threefold.dead_letter d
      WHERE d.target = %(target)s AND d.ns_id = s.ns_id AND d.memory_id = k.memory_id)

-- name: settled_vectors
-- The settled vectors of one namespace.
SELECT encode(uuid_send(k.memory_id), 'hex'), k.ordinal, m.number, {@vector_in}
FROM threefold.chunk k
CROSS JOIN LATERAL (
    SELECT m.state, m.tier, m.extra, m.{number} AS number
    FROM threefold.memory m WHERE m.id = k.memory_id AND m.ns_id = k.ns_id OFFSET 0
) m
WHERE k.ns_id = %(ns_id)s AND {row_held} AND {chunk_held} AND m.number <= %(clock)s
  AND NOT EXISTS (
      SELECT FROM threefold.dead_letter d
      WHERE d.target = %(target)s AND d.ns_id = k.ns_id AND d.memory_id = k.memory_id)

-- name: truth_faults
-- Where the truth contradicts itself: (kind, namespace, memory, what is there, what should be, the
-- highest number, the chunks).
SELECT 'number', m.ns_id, encode(uuid_send(m.id), 'hex'),
       greatest(m.nseq, m.vector_nseq, m.keyword_nseq), c.nseq,
       greatest(m.nseq, m.vector_nseq, m.keyword_nseq), m.chunk_high
FROM threefold.memory m JOIN threefold.ns_clock c USING (ns_id)
WHERE greatest(m.nseq, m.vector_nseq, m.keyword_nseq) > c.nseq
UNION ALL
SELECT 'chunk_high', m.ns_id, encode(uuid_send(m.id), 'hex'), m.chunk_high, k.chunks, 0, k.chunks
FROM (
    SELECT ns_id, memory_id, max(ordinal) + 1 AS chunks FROM threefold.chunk GROUP BY ns_id, memory_id
) k
JOIN threefold.memory m ON m.ns_id = k.ns_id AND m.id = k.memory_id
WHERE m.state <> 'deleted' AND m.chunk_high < k.chunks
UNION ALL
SELECT 'lost', k.ns_id, encode(uuid_send(k.memory_id), 'hex'), count(*), 0, 0, 0
FROM threefold.chunk k
WHERE NOT EXISTS (
    SELECT FROM threefold.memory m
    WHERE m.ns_id = k.ns_id AND m.id = k.memory_id AND m.state <> 'deleted')
GROUP BY k.ns_id, k.memory_id
UNION ALL
SELECT 'lost', v.ns_id, encode(uuid_send(v.memory_id), 'hex'), count(*), 0, 0, 0
FROM threefold.chunk_vector v
WHERE NOT EXISTS (
    SELECT FROM threefold.chunk k WHERE k.ns_id = v.ns_id AND k.memory_id = v.memory_id)
GROUP BY v.ns_id, v.memory_id
UNION ALL
SELECT 'none', m.ns_id, encode(uuid_send(m.id), 'hex'), 0, 1, 0, 0
FROM threefold.memory m
WHERE m.state = 'live' AND m.archive IS NULL
  AND NOT EXISTS (
      SELECT FROM threefold.chunk k WHERE k.ns_id = m.ns_id AND k.memory_id = m.id)

-- name: waiting_memories
-- Live memories with a chunk that waits for its vector.
SELECT count(*) FROM (
    SELECT DISTINCT k.ns_id, k.memory_id FROM threefold.chunk k
    WHERE k.embedding IS NULL AND {@vector} IS NULL
) gap
JOIN threefold.memory m ON m.ns_id = gap.ns_id AND m.id = gap.memory_id
WHERE m.state = 'live'

-- name: locked_highest
-- Lock a namespace, and tell the highest number that it knows of: a clock may have gone back.
WITH locked AS (
    SELECT ns_id, nseq FROM threefold.ns_clock WHERE ns_id = %(ns_id)s FOR UPDATE
)
SELECT greatest(l.nseq, (
    SELECT m.nseq FROM threefold.memory m
    WHERE m.ns_id = l.ns_id AND m.nseq > 0 ORDER BY m.nseq DESC LIMIT 1))
FROM locked l

-- name: raise_clock
-- A clock never goes back; its stamp is new, so that nothing remembered of the namespace holds.
UPDATE threefold.ns_clock
SET nseq = %(nseq)s, stamp = %(stamp)s,
    changed_at = date_bin('1 minute', clock_timestamp(), 'epoch')
WHERE ns_id = %(ns_id)s AND nseq <= %(nseq)s

-- name: redeliver
-- Fresh numbers above one for these memories, in all three places. What has no row becomes a deleted
-- one, so that every target that holds an entry of it is told to remove it.
WITH wanted AS (
    SELECT w.id, w.chunks, %(base)s::bigint + w.place AS nseq
    FROM unnest(%(ids)s::uuid[], %(chunks)s::int[]) WITH ORDINALITY AS w (id, chunks, place)
), written AS (
    INSERT INTO threefold.memory AS m (
        ns_id, id, nseq, vector_nseq, keyword_nseq, state, version, content, content_hash, type,
        confidence, pinned, tags, source, metadata, created_at, updated_at, tier, extra, chunk_high)
    SELECT %(ns_id)s, w.id, w.nseq, w.nseq, w.nseq, 'deleted', 1, '', '', 'semantic', 1, false, '[]',
           '{}', '{}', now(), now(), 'hot', '', w.chunks
    FROM wanted w
    ON CONFLICT (id, ns_id) DO UPDATE SET
        nseq = excluded.nseq, vector_nseq = excluded.vector_nseq,
        keyword_nseq = excluded.keyword_nseq,
        chunk_high = greatest(m.chunk_high, excluded.chunk_high, (
            SELECT coalesce(max(k.ordinal) + 1, 0) FROM threefold.chunk k
            WHERE k.ns_id = m.ns_id AND k.memory_id = m.id))
    RETURNING m.ns_id, m.nseq, m.id, m.version
)
INSERT INTO threefold.audit (ns_id, nseq, memory_id, version, action, at)
SELECT ns_id, nseq, id, version, 'repair', now() FROM written

-- name: drop_lost_chunks
-- Chunks of a memory that is not there or was deleted, with their vectors in every space.
WITH vectors AS (
    DELETE FROM threefold.chunk_vector v
    WHERE v.ns_id = %(ns_id)s AND v.memory_id = %(id)s
      AND NOT EXISTS (
          SELECT FROM threefold.chunk k
          JOIN threefold.memory m ON m.ns_id = k.ns_id AND m.id = k.memory_id
          WHERE k.ns_id = %(ns_id)s AND k.memory_id = %(id)s AND m.state <> 'deleted')
)
DELETE FROM threefold.chunk k
WHERE k.ns_id = %(ns_id)s AND k.memory_id = %(id)s
  AND NOT EXISTS (
      SELECT FROM threefold.memory m
      WHERE m.ns_id = %(ns_id)s AND m.id = %(id)s AND m.state <> 'deleted')

-- name: ask_for_chunks
-- A chunk that says nothing and has no vector: whoever fills such gaps cuts the text anew.
INSERT INTO threefold.chunk (
    ns_id, memory_id, ordinal, start, stop, language, words, bigrams, space)
SELECT m.ns_id, m.id, 0, 0, 0, '', '', '', coalesce(
    (SELECT a.space_id FROM threefold.embedding_space a WHERE a.state = 'active'), 1)
FROM threefold.memory m
WHERE m.ns_id = %(ns_id)s AND m.id = %(id)s AND m.state = 'live'
ON CONFLICT DO NOTHING
