-- Statements of erasing. All run as threefold_worker, but for those of the owner, which say so.

-- name: ledger_names
-- Which lines of the erase ledger this database has carried out.
SELECT encode(uuid_send(name), 'hex') FROM threefold.erase_ledger

-- name: note_line
-- A line of the erase ledger was carried out.
INSERT INTO threefold.erase_ledger (ns_id, memory_id, at, name)
VALUES (%(ns_id)s, %(memory_id)s, %(at)s, %(name)s)
ON CONFLICT (ns_id, name) DO NOTHING

-- name: unfinished_erasures
-- Namespaces with orders whose places were not all seen to be done.
SELECT DISTINCT ns_id FROM threefold.erase_ledger WHERE finished_at IS NULL ORDER BY ns_id

-- name: finish_erasures
-- Every place is done, of orders until then.
UPDATE threefold.erase_ledger SET finished_at = clock_timestamp()
WHERE finished_at IS NULL AND at <= %(until)s

-- name: erase_memories
-- Some memories of a namespace, or some of all where none is named.
SELECT erased, versions, chunks
FROM threefold.erase_memories(%(ns_id)s, %(ids)s::uuid[], %(bound)s)

-- name: forget_namespace
-- The name of a namespace, and what hangs on it as a whole.
SELECT threefold.forget_namespace(%(ns_id)s)

-- name: canaries
-- Pieces of what is about to be erased: of the text, and of its tokens.
SELECT substr(m.content, 1, %(letters)s), k.words, m.extra
FROM threefold.memory m
LEFT JOIN LATERAL (
    SELECT substr(k.words, 1, %(letters)s) AS words FROM threefold.chunk k
    WHERE k.ns_id = m.ns_id AND k.memory_id = m.id AND length(k.words) > 12
    ORDER BY k.ordinal LIMIT 1
) k ON true
WHERE m.ns_id = %(ns_id)s AND m.state <> 'deleted'
  AND (%(ids)s::uuid[] IS NULL OR m.id = ANY (%(ids)s::uuid[]))
ORDER BY length(m.content) DESC LIMIT %(bound)s

-- name: said_elsewhere
-- Whether a memory that stays says this too.
SELECT EXISTS (
    SELECT FROM threefold.memory m
    WHERE position(%(piece)s IN m.content) > 0 OR position(%(piece)s IN m.extra) > 0
       OR position(%(piece)s IN m.tags::text) > 0
) OR EXISTS (
    SELECT FROM threefold.memory_version v WHERE position(%(piece)s IN v.image::text) > 0
) OR EXISTS (SELECT FROM threefold.chunk k WHERE position(%(piece)s IN k.words) > 0)

-- name: partitions_of
-- By the owner: the parts of the tables that hold these namespaces, and the tables that aren't parted.
SELECT DISTINCT c.oid::regclass::text
FROM pg_class c
JOIN pg_namespace s ON s.oid = c.relnamespace AND s.nspname = 'threefold'
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
CROSS JOIN unnest(%(ns_ids)s::bigint[]) AS wanted (ns_id)
WHERE c.relkind = 'r'
  AND CASE
      WHEN c.relname = 'term_stat' THEN true
      WHEN i.inhparent IS NULL THEN EXISTS (
          SELECT FROM pg_attribute a
          WHERE a.attrelid = c.oid AND a.attname = 'ns_id' AND NOT a.attisdropped)
      ELSE satisfies_hash_partition(
          i.inhparent, (SELECT count(*)::int FROM pg_inherits n WHERE n.inhparent = i.inhparent),
          substring(c.relname FROM '[0-9]+$')::int, wanted.ns_id)
  END
ORDER BY 1

-- name: known_targets
-- Every target, and whether a living process follows it: those say so every ten minutes.
SELECT t.target, t.seen_at > clock_timestamp() - interval '30 minutes'
FROM threefold.index_target t WHERE t.target NOT LIKE 'next/%%' ORDER BY t.target

-- name: age_kept_generations
-- What was made until then is kept for a way back no more: whoever looks next removes it.
UPDATE threefold.index_generation SET left_at = 'epoch'
WHERE left_at IS NOT NULL AND made_at <= %(made_until)s

-- name: built_since
-- Targets that were built from nothing since then, and of which nothing older is kept.
SELECT g.target FROM threefold.index_generation g
GROUP BY g.target
HAVING bool_and(g.made_at > %(since)s) AND bool_or(g.origin = 'full')

-- name: leave_targets
-- All that the store knew of targets that nobody follows any more.
WITH gone AS (SELECT * FROM unnest(%(targets)s::text[]) AS t (target)),
targets AS (DELETE FROM threefold.index_target i USING gone WHERE i.target = gone.target),
marks AS (DELETE FROM threefold.index_mark k USING gone WHERE k.target = gone.target),
generations AS (
    DELETE FROM threefold.index_generation g USING gone WHERE g.target = gone.target),
letters AS (DELETE FROM threefold.dead_letter d USING gone WHERE d.target = gone.target)
DELETE FROM threefold.index_progress p USING gone WHERE p.target = gone.target
