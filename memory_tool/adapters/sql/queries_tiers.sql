-- Statements of ageing: tiers, the archive, expiry, purging and use. Those of jobs see all namespaces.

-- name: lower_chunks_with
-- Chunks of warm and cold memories that hold one of the terms, in their text or beside it.
SELECT ns_id, encode(uuid_send(memory_id), 'hex'), ordinal, keyword_nseq, words, bigrams, extra
FROM threefold.lower_chunks_with_terms(%(terms)s::text[], %(ids)s::uuid[], %(bound)s)

-- name: bring_back
-- Take back what the archive kept.
SELECT threefold.bring_back(%(ns_id)s, %(loaded)s::json)

-- name: put_tokens
-- Replace tokens of chunks.
SELECT threefold.put_tokens(%(ns_id)s, %(tokens)s::json)

-- name: drop_versions
-- Old versions are in the archive now.
SELECT threefold.drop_versions(%(ns_id)s, %(ids)s::uuid[])

-- name: note_lowered
-- So many more memories of a namespace are warm or cold; its clock is locked.
UPDATE threefold.ns_clock SET lowered = greatest(lowered + %(lowered)s, 0) WHERE ns_id = %(ns_id)s

-- name: note_archive_file
-- A file that rows name from now on.
INSERT INTO threefold.archive_file (name, ns_id, sha256, bytes, memories, stale_since)
VALUES (%(name)s, %(ns_id)s, %(sha256)s, %(bytes)s, %(memories)s,
        CASE WHEN %(stale)s::boolean THEN now() END)

-- name: due_moves
-- Live memories that are not in the tier where they belong, with that tier.
SELECT m.ns_id, n.address, encode(uuid_send(m.id), 'hex'), m.nseq, w.tier, octet_length(m.content)
FROM threefold.memory m
JOIN threefold.namespace n USING (ns_id)
LEFT JOIN threefold.memory_use u ON u.ns_id = m.ns_id AND u.memory_id = m.id
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN m.pinned OR m.importance >= 4 THEN 'hot'
        WHEN age.since >= now() - make_interval(secs => %(hot)s::float8) THEN 'hot'
        WHEN %(warm)s::float8 IS NULL AND m.tier = 'cold' THEN 'cold'
        WHEN %(warm)s::float8 IS NULL THEN 'warm'
        WHEN age.since >= now() - make_interval(secs => %(warm)s::float8) THEN 'warm'
        ELSE 'cold' END AS tier
    FROM (SELECT greatest(m.created_at, m.updated_at, u.used_at) AS since) age
) w
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now()) AND m.tier <> w.tier
  AND n.retired_at IS NULL
  AND (w.tier <> 'cold' OR NOT EXISTS (
      SELECT FROM threefold.chunk k
      WHERE k.ns_id = m.ns_id AND k.memory_id = m.id AND ({@vector}) IS NULL))
LIMIT %(bound)s

-- name: archive_records
-- All that is known of some memories: image, old versions, and where their chunks lie.
SELECT encode(uuid_send(m.id), 'hex'), n.address, to_jsonb(m),
       coalesce((SELECT jsonb_agg(jsonb_build_object(
                     'version', v.version, 'replaced_at', v.replaced_at, 'image', v.image)
                     ORDER BY v.version)
                 FROM threefold.memory_version v
                 WHERE v.ns_id = m.ns_id AND v.memory_id = m.id), '[]'),
       coalesce((SELECT jsonb_agg(jsonb_build_object('ordinal', k.ordinal, 'start', k.start,
                     'stop', k.stop, 'language', k.language) ORDER BY k.ordinal)
                 FROM threefold.chunk k
                 WHERE k.ns_id = m.ns_id AND k.memory_id = m.id), '[]')
FROM threefold.memory m
JOIN threefold.namespace n USING (ns_id)
WHERE m.ns_id = %(ns_id)s AND m.id = ANY (%(ids)s::uuid[]) AND m.state = 'live'

-- name: tier_figures
-- How many live memories are in each tier.
SELECT tier, count(*) FROM threefold.memory
WHERE state = 'live' AND (expires_at IS NULL OR expires_at > now()) GROUP BY tier

-- name: archive_figures
-- How many files the archive has, what they weigh, and how many of them have to be written again.
SELECT count(*), coalesce(sum(bytes), 0)::bigint, count(stale_since) FROM threefold.archive_file
WHERE gone_since IS NULL

-- name: miscounted
-- Namespaces whose count of warm and cold memories is not what it seems to be.
SELECT c.ns_id FROM threefold.ns_clock c
LEFT JOIN (
    SELECT ns_id, count(*) AS memories FROM threefold.memory
    WHERE tier <> 'hot' AND state = 'live' GROUP BY ns_id
) found USING (ns_id)
WHERE c.lowered <> coalesce(found.memories, 0)

-- name: lock_clock
-- Nobody writes to the namespace until the transaction ends.
SELECT nseq FROM threefold.ns_clock WHERE ns_id = %(ns_id)s FOR UPDATE

-- name: count_lowered
-- Count them under the lock.
UPDATE threefold.ns_clock SET lowered = (
    SELECT count(*) FROM threefold.memory m
    WHERE m.ns_id = %(ns_id)s AND m.tier <> 'hot' AND m.state = 'live')
WHERE ns_id = %(ns_id)s

-- name: known_archive_files
-- Every file that is or was named a moment ago.
SELECT name FROM threefold.archive_file

-- name: stale_archive_files
-- Files with lines that have to go.
SELECT name, ns_id FROM threefold.archive_file
WHERE stale_since IS NOT NULL AND gone_since IS NULL ORDER BY stale_since

-- name: kept_in_archive
-- The memories that the archive keeps in a file, and where.
SELECT encode(uuid_send(m.id), 'hex'), m.archive
FROM threefold.archive_file f
JOIN threefold.memory m ON m.ns_id = f.ns_id
WHERE f.name = %(name)s AND m.tier <> 'hot' AND m.archive ->> 'file' = f.name

-- name: switch_archive
-- Read memories of a file from another one.
UPDATE threefold.memory m SET archive = p.archive
FROM json_to_recordset(%(places)s::json) AS p (id uuid, archive jsonb)
WHERE m.ns_id = %(ns_id)s AND m.id = p.id AND m.archive ->> 'file' = %(name)s

-- name: retire_archive_file
-- No row names the file any more. A reader may still have it from a row that it read before.
UPDATE threefold.archive_file SET gone_since = now() WHERE name = %(name)s

-- name: gone_archive_files
-- Files that were switched from so many seconds ago.
SELECT name FROM threefold.archive_file
WHERE gone_since <= clock_timestamp() - make_interval(secs => %(seconds)s)

-- name: forget_archive_file
-- The file was removed.
DELETE FROM threefold.archive_file WHERE name = %(name)s

-- name: expired
-- Memories whose time is over.
SELECT n.address, encode(uuid_send(m.id), 'hex')
FROM threefold.memory m JOIN threefold.namespace n USING (ns_id)
WHERE m.expires_at <= now() AND m.state <> 'deleted' AND n.retired_at IS NULL
ORDER BY m.expires_at LIMIT %(bound)s

-- name: purgeable
-- For each namespace with deleted rows the number that every target has passed.
SELECT d.ns_id, coalesce(p.passed, d.highest)
FROM (
    SELECT ns_id, max(nseq) AS highest FROM threefold.memory
    WHERE state = 'deleted' AND updated_at < now() - make_interval(secs => %(seconds)s)
    GROUP BY ns_id
) d
CROSS JOIN LATERAL (
    SELECT min(coalesce(p.applied, 0)) AS passed
    FROM threefold.index_target t
    LEFT JOIN threefold.index_progress p ON p.target = t.target AND p.ns_id = d.ns_id
) p

-- name: purge
-- Remove rows of deleted memories up to a number; the numbers that went. The clock is locked.
DELETE FROM threefold.memory WHERE ns_id = %(ns_id)s AND id IN (
    SELECT m.id FROM threefold.memory m
    WHERE m.ns_id = %(ns_id)s AND m.nseq > 0 AND m.nseq <= %(passed)s AND m.state = 'deleted'
      AND m.updated_at < now() - make_interval(secs => %(seconds)s)
      AND NOT EXISTS (SELECT FROM threefold.dead_letter l
                      WHERE l.ns_id = m.ns_id AND l.memory_id = m.id)
    ORDER BY m.nseq LIMIT %(bound)s)
RETURNING nseq

-- name: note_purged
-- Up to this number rows are missing.
UPDATE threefold.ns_clock SET purged = greatest(purged, %(purged)s) WHERE ns_id = %(ns_id)s

-- name: add_uses
-- Count how often memories were returned. In the order of their keys, so that two that count at once
-- wait for each other only.
INSERT INTO threefold.memory_use AS t (ns_id, memory_id, uses, used_at)
SELECT s.ns_id, s.id, s.uses, now() - make_interval(secs => s.ago)
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::uuid[], %(uses)s::bigint[], %(ago)s::float8[])
    AS s (ns_id, id, uses, ago)
CROSS JOIN LATERAL (
    SELECT m.state FROM threefold.memory m WHERE m.ns_id = s.ns_id AND m.id = s.id OFFSET 0
) m
WHERE m.state = 'live'
ORDER BY s.ns_id, s.id
ON CONFLICT (ns_id, memory_id) DO UPDATE SET
    uses = t.uses + excluded.uses, used_at = greatest(t.used_at, excluded.used_at)
