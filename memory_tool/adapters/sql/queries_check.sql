-- What an index has to hold, for whoever compares. Every statement reads in one snapshot.

-- name: settled_fingerprints
-- Of each namespace the number of entries that a target at these clocks has to hold, and the
-- exclusive or of their digests: memory_tool.inventory.entry_digest says the same.
SELECT m.ns_id, count(*), bit_xor(
    ('x' || substr(md5(encode(uuid_send(m.id), 'hex') || ':' || k.ordinal || ':' || m.{number}), 1, 16))
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
SELECT s.ns_id, m.hex, k.ordinal, m.number
FROM unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied)
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.{number} AS number, m.extra
    FROM threefold.memory m
    WHERE m.ns_id = s.ns_id AND {row_held} AND m.{number} <= s.applied
      AND NOT EXISTS (
          SELECT FROM threefold.dead_letter d
          WHERE d.target = %(target)s AND d.ns_id = m.ns_id AND d.memory_id = m.id)
    ORDER BY m.id OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT k.ordinal FROM threefold.chunk k
    WHERE k.ns_id = m.ns_id AND k.memory_id = m.id AND {chunk_held}
    ORDER BY k.ordinal OFFSET 0
) k
