-- Statements of backup and restore. Tables are listed by the catalogue: one that a later version adds
-- is saved without anybody thinking of it.

-- name: stored_tables
-- Every table with the columns that are written, and how many bytes of the disk it takes.
SELECT c.relname,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
       CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid)
       ELSE (SELECT coalesce(sum(pg_table_size(part.relid)), 0)::bigint
             FROM pg_partition_tree(c.oid) part WHERE part.isleaf) END
FROM pg_class c
WHERE c.relnamespace = 'threefold'::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT c.relispartition
ORDER BY c.relname

-- name: sequence_numbers
-- What each sequence gave out last.
SELECT sequencename, last_value FROM pg_sequences
WHERE schemaname = 'threefold' AND last_value IS NOT NULL

-- name: dump_moment
-- Who the store is, when this is, and how many live memories it has.
SELECT encode(uuid_send(s.cluster_id), 'hex'), clock_timestamp(),
       (SELECT count(*) FROM threefold.memory m WHERE m.state = 'live')
FROM threefold.store_meta s

-- name: dump_pointers
-- The published generation of each target.
SELECT target, generation, locator, mark FROM threefold.index_target WHERE generation > 0

-- name: dump_archives
-- The files of the archive that rows name.
SELECT DISTINCT name, sha256 FROM threefold.archive_file WHERE gone_since IS NULL

-- name: log_clock
-- The store's clock, and what changes when the clocks of its namespaces were replaced by a backup's.
SELECT clock_timestamp(), pg_relation_filenode('threefold.ns_clock')::bigint

-- name: walls
-- Tables whose wall keeps the owner out too.
SELECT relname FROM pg_class
WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
  AND NOT relispartition AND relforcerowsecurity

-- name: advance_sequence
-- Never back: numbers given out meanwhile stay given out.
SELECT setval(s.seqrelid, greatest(%(last)s, coalesce(pg_sequence_last_value(s.seqrelid), 0)))
FROM pg_sequence s
WHERE s.seqrelid = to_regclass(format('threefold.%%I', %(name)s::text)) AND %(last)s > 0

-- name: in_the_way
-- Whose transactions hold a table of ours.
SELECT DISTINCT l.pid, coalesce(a.usename, 'unknown')
FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE c.relnamespace = 'threefold'::regnamespace AND l.granted
  AND l.pid NOT IN (pg_backend_pid(), %(own)s)
ORDER BY l.pid

-- name: kept_by_backup
-- Which memories a backup has, to be compared with those of the store.
CREATE TEMPORARY TABLE kept (
    ns_id bigint, id uuid, state text, version int, updated_at timestamptz, PRIMARY KEY (ns_id, id)
) ON COMMIT DROP

-- name: lost_by_restore
-- Live memories that the backup has not, or only as they were before; deletions that it would undo.
-- What the ledger orders to erase stays erased, and is no deletion of that kind.
SELECT count(*) FILTER (WHERE m.state = 'live' AND (
           k.id IS NULL OR k.version < m.version OR k.updated_at < m.updated_at)),
       count(*) FILTER (WHERE m.state = 'deleted' AND k.state = 'live' AND NOT EXISTS (
           SELECT FROM threefold.erase_ledger l
           WHERE l.ns_id = m.ns_id AND (l.memory_id IS NULL OR l.memory_id = m.id)))
FROM threefold.memory m LEFT JOIN kept k ON k.ns_id = m.ns_id AND k.id = m.id

-- name: unsee_targets
-- Who followed the indexes of the saved store may be nobody here. Who lives says so again.
UPDATE threefold.index_target SET seen_at = least(seen_at, now() - interval '1 hour')

-- name: forget_switch
-- The transaction that changed the space belongs to another history, and perhaps another server.
UPDATE threefold.embedding_space SET switched_by = NULL
