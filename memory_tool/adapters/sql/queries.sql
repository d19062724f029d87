-- Every statement stands behind a line with its name. Lists of namespaces, each with the ids wanted of
-- it as the text of an array, are taken apart by unnest and looked up in LATERAL subqueries with
-- OFFSET 0, which can only be nested loops: each names one namespace, so its partition alone is read,
-- and neither a wrong statistic nor a missing one can turn "fetch these" into "read the whole
-- namespace". For the latter, a subquery that looks up ids asks for nothing else: with state = 'live'
-- inside it, an index of all live rows would do as well.

-- name: open_write
-- Make, name and lock a namespace; its clock, the answer already given, and the rows to look at.
SELECT ns_id, nseq, now, request_hash, response, kept FROM threefold.open_write(
    %(address)s, %(address_hash)s, %(project)s, %(user)s, %(agent)s, %(path)s, %(key)s,
    %(text_hashes)s::bytea[], %(key_hashes)s::bytea[], %(ids)s::uuid[])

-- name: write_changes
-- Put down a plan.
SELECT threefold.write_changes(
    %(ns_id)s, %(base)s, %(last)s, %(stamp)s, %(changed)s::json, %(archived)s::uuid[],
    %(versions_kept)s, %(rechunked)s::uuid[], %(deleted)s::uuid[], %(chunks)s::json,
    %(embeddings)s, %(space)s, %(key)s, %(request_hash)s, %(receipt)s::jsonb)

-- name: covered_namespaces
-- The namespaces that carry all the ids named.
SELECT ns_id, address, nseq, stamp
FROM threefold.covered_namespaces(%(project)s, %(user)s, %(agent)s, %(path)s, %(bound)s)

-- name: named_namespaces
-- The namespaces of these addresses.
SELECT ns_id, address, nseq, stamp FROM threefold.named_namespaces(%(hashes)s::bytea[])

-- name: view_state
-- The store's clock, whether a standby is asked, the store's incarnation, its active space, and the
-- pointers of the targets, one row for each.
SELECT clock_timestamp(), pg_is_in_recovery(),
       concat_ws('/', extract(epoch FROM pg_postmaster_start_time()),
                 (SELECT oid FROM pg_database WHERE datname = current_database()),
                 pg_relation_filenode('threefold.ns_clock')),
       (SELECT s.space_id FROM threefold.embedding_space s WHERE s.state = 'active'),
       t.target, t.generation, t.locator, t.mark
FROM (SELECT) one
LEFT JOIN threefold.index_target t ON t.generation > 0 AND t.target = ANY (%(targets)s::text[])

-- name: name_namespaces
-- Name the namespaces of the transaction. Its queries go by keys that each have an index, so making
-- a plan for the length of every array (1 ms) would only cost more than it finds; and a planner
-- without statistics must not combine the bitmap of one id with that of a whole namespace, nor read
-- an empty table as a whole for ever. Plans look dear, since they hold every partition, though one
-- is read: to compile them, at 80 ms, never pays.
SELECT set_config('threefold.namespaces', %(named)s, true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true)

-- name: missing_marks
-- Targets whose mark this history does not know.
SELECT used.target FROM unnest(%(targets)s::text[], %(marks)s::text[]) AS used (target, mark)
WHERE (SELECT k.mark FROM threefold.index_mark k
       WHERE k.target = used.target AND k.mark = used.mark) IS NULL

-- name: clocks
-- The active space, beside the clocks of the transaction's namespaces and how many memories of each
-- are warm or cold.
SELECT s.space_id, c.ns_id, c.nseq, c.lowered
FROM (SELECT (SELECT s.space_id FROM threefold.embedding_space s WHERE s.state = 'active')) s (space_id)
LEFT JOIN threefold.ns_clock c ON c.ns_id = ANY (%(ns_ids)s::bigint[])

-- name: overlay
-- Rows above a number in each namespace, with their chunks, in order; none when there are too many.
-- Joins by LATERAL keep the order of the arrays and the indexes. The index of the log wants nseq > 0.
SELECT m.ns_id, m.hex, m.nseq, m.vector_nseq, m.keyword_nseq, m.live, m.extra, k.*
FROM unnest(%(since_ns)s::bigint[], %(since)s::bigint[]) AS s (ns_id, nseq)
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.nseq, m.vector_nseq,
           m.keyword_nseq, m.extra,
           m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now()) AS live
    FROM threefold.memory m
    WHERE m.ns_id = s.ns_id AND m.nseq > s.nseq AND m.nseq > 0 ORDER BY m.nseq
    LIMIT %(bound)s
) m
LEFT JOIN LATERAL (
    SELECT k.ordinal, k.start, k.stop, k.language, k.words, k.bigrams, {@vector} AS embedding
    FROM threefold.chunk k WHERE m.live AND k.ns_id = m.ns_id AND k.memory_id = m.id
    ORDER BY k.ordinal OFFSET 0
) k ON true
WHERE (SELECT sum(greatest(c.nseq - b.nseq, 0))
       FROM unnest(%(since_ns)s::bigint[], %(since)s::bigint[]) AS b (ns_id, nseq)
       JOIN threefold.ns_clock c ON c.ns_id = b.ns_id) <= %(bound)s

-- name: outlines
-- The light columns of candidates that may be seen.
SELECT encode(uuid_send(m.id), 'hex'), m.ns_id, m.vector_nseq, m.keyword_nseq, m.content_hash,
       m.type, m.importance, m.pinned, m.confidence, extract(epoch FROM m.event_time)::float8,
       octet_length(m.content) / 4, m.conversation_id, coalesce(m.turn_position, 0)
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::text[]) AS wanted (ns_id, ids)
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m
    WHERE m.id = ANY (wanted.ids::uuid[]) AND m.ns_id = wanted.ns_id OFFSET 0
) m
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
  {condition}

-- name: rows
-- Whole rows that may be seen, and how they were used.
SELECT to_jsonb(m), u.uses, u.used_at
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::text[]) AS wanted (ns_id, ids)
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m
    WHERE m.id = ANY (wanted.ids::uuid[]) AND m.ns_id = wanted.ns_id OFFSET 0
) m
LEFT JOIN LATERAL (
    SELECT u.uses, u.used_at FROM threefold.memory_use u
    WHERE u.ns_id = m.ns_id AND u.memory_id = m.id OFFSET 0
) u ON true
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())

-- name: matching_keys
-- Rows that may be seen and meet a condition.
SELECT m.*
FROM unnest(%(ns_ids)s::bigint[]) AS s (ns_id)
CROSS JOIN LATERAL (
    SELECT m.ns_id, encode(uuid_send(m.id), 'hex') FROM threefold.memory m
    WHERE m.ns_id = s.ns_id
      AND m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
      {condition}
    OFFSET 0
) m
LIMIT %(bound)s

-- name: matching_keys_by_metadata
-- The same, where a part of the condition is served by the index on metadata.
SELECT m.ns_id, encode(uuid_send(m.id), 'hex')
FROM threefold.memories_with_metadata(%(wanted)s::jsonb) w
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m WHERE m.ns_id = w.ns_id AND m.id = w.id OFFSET 0
) m
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
  {condition}
LIMIT %(bound)s

-- name: vectors_of
-- Stored embeddings of some memories.
SELECT m.ns_id, encode(uuid_send(m.id), 'hex'), k.ordinal, m.vector_nseq, k.embedding
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::text[]) AS wanted (ns_id, ids)
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m
    WHERE m.id = ANY (wanted.ids::uuid[]) AND m.ns_id = wanted.ns_id OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT k.ordinal, {@vector} AS embedding FROM threefold.chunk k
    WHERE k.ns_id = m.ns_id AND k.memory_id = m.id OFFSET 0
) k
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
  AND k.embedding IS NOT NULL
LIMIT %(bound)s

-- name: all_vectors
-- Stored embeddings of whole namespaces.
SELECT m.ns_id, m.hex, k.ordinal, m.vector_nseq, k.embedding
FROM unnest(%(ns_ids)s::bigint[]) AS s (ns_id)
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.vector_nseq
    FROM threefold.memory m
    WHERE m.ns_id = s.ns_id
      AND m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
    OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT k.ordinal, {@vector} AS embedding FROM threefold.chunk k
    WHERE k.ns_id = m.ns_id AND k.memory_id = m.id OFFSET 0
) k
WHERE k.embedding IS NOT NULL
LIMIT %(bound)s

-- name: chunks_with
-- Chunks that hold one of the terms, in their text or beside it.
SELECT ns_id, encode(uuid_send(memory_id), 'hex'), ordinal, keyword_nseq, words, bigrams, extra
FROM threefold.chunks_with_terms(%(terms)s::text[], %(bound)s)

-- name: term_documents
-- In how many chunks each term stands, as counted last.
SELECT term, documents FROM threefold.term_stat WHERE term = '' OR term = ANY (%(terms)s::text[])

-- name: page
-- Newest first, and how they were used; a row is seen once however the listing goes on.
SELECT to_jsonb(m), u.uses, u.used_at
FROM unnest(%(ns_ids)s::bigint[]) AS s (ns_id)
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m
    WHERE m.ns_id = s.ns_id
      AND m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
      AND m.event_time <= coalesce(%(after_time)s::timestamptz, 'infinity')
      AND (%(after_time)s::timestamptz IS NULL OR m.event_time < %(after_time)s::timestamptz
           OR m.id > %(after_id)s::uuid)
      {condition}
    ORDER BY m.event_time DESC, m.id LIMIT %(bound)s
) m
LEFT JOIN LATERAL (
    SELECT u.uses, u.used_at FROM threefold.memory_use u
    WHERE u.ns_id = m.ns_id AND u.memory_id = m.id OFFSET 0
) u ON true
ORDER BY m.event_time DESC, m.id LIMIT %(bound)s

-- name: deleted_ids
-- Those of these ids that were deleted and are not purged yet.
SELECT encode(uuid_send(m.id), 'hex')
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::text[]) AS wanted (ns_id, ids)
CROSS JOIN LATERAL (
    SELECT * FROM threefold.memory m
    WHERE m.id = ANY (wanted.ids::uuid[]) AND m.ns_id = wanted.ns_id OFFSET 0
) m
WHERE m.state = 'deleted'

-- name: old_versions
-- The kept versions of a memory, oldest first.
SELECT v.image
FROM unnest(%(ns_ids)s::bigint[], %(ids)s::text[]) AS wanted (ns_id, ids)
CROSS JOIN LATERAL unnest(wanted.ids::uuid[]) AS one (id)
CROSS JOIN LATERAL (
    SELECT v.version, v.image FROM threefold.memory_version v
    WHERE v.ns_id = wanted.ns_id AND v.memory_id = one.id OFFSET 0
) v
ORDER BY v.version

-- name: store_counts
-- Figures without content.
SELECT name, figure FROM threefold.store_counts()

-- name: store_identity
-- What tells this store from every other.
SELECT encode(uuid_send(cluster_id), 'hex') FROM threefold.store_meta

-- name: changed_clocks
-- Namespaces changed since a moment, or all.
SELECT ns_id, nseq, purged FROM threefold.ns_clock
WHERE %(since)s::timestamptz IS NULL OR changed_at > %(since)s::timestamptz
ORDER BY ns_id

-- name: store_clock
-- The store's clock.
SELECT clock_timestamp()

-- name: be_patient
-- A target may take its time between two rows; the transaction holds no namespace.
SELECT set_config('idle_in_transaction_session_timeout', '10min', true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true)

-- name: known_mark
-- The mark, if this history made it.
SELECT mark FROM threefold.index_mark WHERE target = %(target)s AND mark = %(mark)s

-- name: new_mark
-- Remember a mark.
INSERT INTO threefold.index_mark (target, mark) VALUES (%(target)s, %(mark)s)

-- name: forget_marks
-- Forget marks that no index carries any more. A target that has to be rebuilt for it is safe.
DELETE FROM threefold.index_mark k
WHERE k.target = %(target)s AND k.made_at < now() - interval '6 hours'
  AND k.seq < (SELECT l.seq FROM threefold.index_mark l WHERE l.target = %(target)s
               ORDER BY l.seq DESC OFFSET 1000 LIMIT 1)
  AND NOT EXISTS (
      SELECT FROM threefold.index_target t WHERE t.target = k.target AND t.mark = k.mark)
  AND NOT EXISTS (
      SELECT FROM threefold.index_generation g WHERE g.target = k.target AND g.mark = k.mark)

-- name: changed_rows
-- Rows whose own number lies above one and up to another in each namespace, with their chunks. Not
-- by nseq at the upper end: a row whose importance changed after the cut would never come.
-- Joins by LATERAL keep the order of the arrays and the indexes. The index of the log wants nseq > 0.
SELECT m.ns_id, m.hex, m.nseq, m.number, m.live, m.extra, m.chunk_high, k.*
FROM unnest(%(ns_ids)s::bigint[], %(above)s::bigint[], %(upto)s::bigint[]) AS s (ns_id, above, upto)
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.nseq, m.{number} AS number,
           {held} AS live, m.extra, m.chunk_high
    FROM threefold.memory m
    WHERE m.ns_id = s.ns_id AND m.nseq > s.above AND m.nseq > 0
      AND m.{number} > s.above AND m.{number} <= s.upto
    ORDER BY m.nseq OFFSET 0
) m
LEFT JOIN LATERAL (
    SELECT k.ordinal, k.start, k.stop, k.language, {columns}
    FROM threefold.chunk k WHERE m.live AND k.ns_id = m.ns_id AND k.memory_id = m.id
    ORDER BY k.ordinal OFFSET 0
) k ON true

-- name: pointer
-- The generation of a target that is to be read.
SELECT target, generation, locator, mark FROM threefold.index_target
WHERE target = %(target)s AND generation > 0

-- name: publish
-- Switch a pointer to a generation of this history, if it stands where that was built from.
INSERT INTO threefold.index_target AS t (target, generation, locator, mark)
SELECT k.target, %(generation)s, %(locator)s, k.mark
FROM threefold.index_mark k
WHERE k.target = %(target)s AND k.mark = %(mark)s
  AND (coalesce(%(base_mark)s::text, '') = '' OR EXISTS (
      SELECT FROM threefold.index_target b WHERE b.target = k.target))
ON CONFLICT (target) DO UPDATE SET
    generation = excluded.generation, locator = excluded.locator,
    mark = excluded.mark, seen_at = now()
WHERE %(base_mark)s::text IS NULL OR t.mark = %(base_mark)s::text
   OR (%(base_mark)s::text = '' AND t.generation = 0)
RETURNING target

-- name: note_progress
-- How far a target has come.
WITH seen AS (
    INSERT INTO threefold.index_target AS t (target) VALUES (%(target)s)
    ON CONFLICT (target) DO UPDATE SET seen_at = now()
)
INSERT INTO threefold.index_progress AS p (ns_id, target, applied)
SELECT s.ns_id, %(target)s, s.applied
FROM unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied)
ON CONFLICT (ns_id, target) DO UPDATE SET applied = excluded.applied

-- name: without_vectors
-- Live rows with a chunk that has no vector, in random order: a text that the model refuses must not
-- stand in the way of the others.
SELECT to_jsonb(m), n.address
FROM (
    SELECT DISTINCT k.ns_id, k.memory_id FROM threefold.chunk k
    WHERE k.embedding IS NULL AND {@vector} IS NULL
) gap
JOIN threefold.memory m ON m.ns_id = gap.ns_id AND m.id = gap.memory_id
JOIN threefold.namespace n ON n.ns_id = m.ns_id
WHERE m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now()) AND m.archive IS NULL
ORDER BY random() LIMIT %(bound)s

-- name: forget_receipts
-- Answers under idempotency keys live seven days.
DELETE FROM threefold.idempotency WHERE created_at < now() - interval '7 days'

-- name: take_lease
-- Take a lease or renew it; says whether it is held. Writes nothing while somebody else holds it, nor
-- while it is ours and fresh: looking costs no commit.
WITH fresh AS (
    SELECT FROM threefold.lease
    WHERE name = %(name)s AND holder = %(holder)s
      AND expires > clock_timestamp() + make_interval(secs => %(seconds)s * 0.6)
), taken AS (
    INSERT INTO threefold.lease AS l (name, holder, expires)
    SELECT %(name)s, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE NOT EXISTS (SELECT FROM fresh)
      AND NOT EXISTS (SELECT FROM threefold.lease other WHERE other.name = %(name)s
                      AND other.holder <> %(holder)s AND other.expires > clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
    WHERE l.holder = excluded.holder OR l.expires <= clock_timestamp()
    RETURNING name
)
SELECT EXISTS (SELECT FROM fresh) OR EXISTS (SELECT FROM taken)

-- name: release_lease
-- Give a lease back.
DELETE FROM threefold.lease WHERE name = %(name)s AND holder = %(holder)s

-- name: offer_job
-- Put down the job of a period, unless it is there; says whether it is done.
WITH new AS (
    INSERT INTO threefold.job (kind, target, period) VALUES (%(kind)s, %(target)s, %(period)s)
    ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM threefold.job WHERE kind = %(kind)s AND target = %(target)s
               AND period = %(period)s AND state = 'done')

-- name: claim_job
-- An open job that nobody holds, with a lease on it. Two that look at once take different rows; one
-- that looks at an older snapshot than the claim of another is refused by the lease.
WITH open AS (
    SELECT j.kind, j.target, j.period, concat_ws('/', 'job', j.kind, j.target, j.period) AS lease
    FROM threefold.job j
    WHERE j.state = 'offered' AND j.changed_at <= clock_timestamp()
      AND (j.kind, j.target) IN (SELECT * FROM unnest(%(kinds)s::text[], %(targets)s::text[]))
      AND NOT EXISTS (
          SELECT FROM threefold.lease l
          WHERE l.name = concat_ws('/', 'job', j.kind, j.target, j.period)
            AND l.expires > clock_timestamp())
    ORDER BY j.period DESC LIMIT 1 FOR UPDATE OF j SKIP LOCKED
), held AS (
    INSERT INTO threefold.lease AS l (name, holder, expires)
    SELECT lease, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s) FROM open
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
    WHERE l.expires <= clock_timestamp()
    RETURNING name
)
SELECT open.kind, open.target, open.period, open.lease FROM open JOIN held ON held.name = open.lease

-- name: finish_jobs
-- The open periods of a kind are done, all or up to one. Their names sort as bytes.
UPDATE threefold.job SET state = 'done', changed_at = clock_timestamp()
WHERE kind = %(kind)s AND target = %(target)s AND state = 'offered'
  AND (%(period)s::text IS NULL OR period COLLATE "C" <= %(period)s::text)

-- name: put_off_job
-- Nobody is to try it again within a minute.
UPDATE threefold.job SET changed_at = clock_timestamp() + interval '1 minute'
WHERE kind = %(kind)s AND target = %(target)s AND period = %(period)s AND state = 'offered'

-- name: forget_jobs
-- Done jobs are kept for two days, longer than any trigger is late; open ones that nobody does, a week.
DELETE FROM threefold.job
WHERE changed_at < now() - CASE state WHEN 'done' THEN interval '2 days' ELSE interval '7 days' END

-- name: forget_leases
-- Leases that nobody came back for.
DELETE FROM threefold.lease WHERE expires < now() - interval '1 day'

-- name: note_seen
-- These targets have a living holder.
UPDATE threefold.index_target SET seen_at = now() WHERE target = ANY (%(targets)s::text[])

-- name: retire_targets
-- Targets unseen for a day, with all that the store knew of them.
WITH gone AS (
    DELETE FROM threefold.index_target WHERE seen_at < now() - interval '24 hours' RETURNING target
), marks AS (
    DELETE FROM threefold.index_mark k USING gone WHERE k.target = gone.target
), progress AS (
    DELETE FROM threefold.index_progress p USING gone WHERE p.target = gone.target
), letters AS (
    DELETE FROM threefold.dead_letter d USING gone WHERE d.target = gone.target
), generations AS (
    DELETE FROM threefold.index_generation g USING gone WHERE g.target = gone.target
)
SELECT target FROM gone ORDER BY target

-- name: undelivered
-- Rows that a target can't take, in the version that it refused, with their chunks.
SELECT d.target, m.ns_id, m.hex, m.nseq, m.vector_nseq, m.keyword_nseq, true, m.extra, k.*
FROM threefold.dead_letter d
CROSS JOIN LATERAL (
    SELECT m.ns_id, m.id, encode(uuid_send(m.id), 'hex') AS hex, m.nseq, m.vector_nseq,
           m.keyword_nseq, m.extra
    FROM threefold.memory m
    WHERE m.ns_id = d.ns_id AND m.id = d.memory_id
      AND d.version IN (m.vector_nseq, m.keyword_nseq)
      AND m.state = 'live' AND (m.expires_at IS NULL OR m.expires_at > now())
    OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT k.ordinal, k.start, k.stop, k.language, k.words, k.bigrams, {@vector} AS embedding
    FROM threefold.chunk k WHERE k.ns_id = m.ns_id AND k.memory_id = m.id ORDER BY k.ordinal OFFSET 0
) k
WHERE d.ns_id = ANY (%(ns_ids)s::bigint[]) AND d.target = ANY (%(targets)s::text[])
ORDER BY d.target, m.ns_id, m.hex, k.ordinal
LIMIT %(bound)s

-- name: clear_letters
-- Forget dead letters of rows that have changed since, or were delivered again.
DELETE FROM threefold.dead_letter d USING threefold.memory m
WHERE d.target = %(target)s AND m.ns_id = d.ns_id AND m.id = d.memory_id
  AND (m.{number} > d.version OR EXISTS (
      SELECT FROM unnest(%(ns_ids)s::bigint[], %(above)s::bigint[], %(upto)s::bigint[])
          AS s (ns_id, above, upto)
      WHERE s.ns_id = d.ns_id AND m.{number} > s.above AND m.{number} <= s.upto))

-- name: bury
-- Remember a row that a target can't take.
INSERT INTO threefold.dead_letter AS d (target, ns_id, memory_id, version, reason)
VALUES (%(target)s, %(ns_id)s, %(id)s, %(version)s, %(reason)s)
ON CONFLICT (ns_id, memory_id, target) DO UPDATE SET
    version = excluded.version, reason = excluded.reason, at = now()
WHERE d.version <= excluded.version

-- name: lag
-- How many numbers a target has not applied, and how many seconds ago the oldest was given out.
SELECT coalesce(sum(behind), 0)::bigint,
       coalesce(extract(epoch FROM clock_timestamp() - min(oldest)), 0)::float8
FROM (
    SELECT c.nseq - coalesce(p.applied, 0) AS behind,
           (SELECT m.updated_at FROM threefold.memory m
            WHERE m.ns_id = c.ns_id AND m.nseq > coalesce(p.applied, 0) AND m.nseq > 0
            ORDER BY m.nseq LIMIT 1)
               AS oldest
    FROM threefold.ns_clock c
    LEFT JOIN threefold.index_progress p ON p.ns_id = c.ns_id AND p.target = %(target)s
    WHERE c.nseq > coalesce(p.applied, 0)
) late
