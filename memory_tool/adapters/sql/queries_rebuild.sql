-- Statements of building indexes anew; see queries.sql.

-- name: adopt_target
-- The target is followed.
INSERT INTO threefold.index_target AS t (target) VALUES (%(target)s)
ON CONFLICT (target) DO UPDATE SET seen_at = now()

-- name: adopt_marks
-- The marks of a successor are the target's too.
INSERT INTO threefold.index_mark (target, mark, made_at)
SELECT %(target)s, k.mark, k.made_at FROM threefold.index_mark k
WHERE k.target = %(successor)s ORDER BY k.seq
ON CONFLICT DO NOTHING

-- name: adopt_progress
-- How far a successor has come is how far the target has.
INSERT INTO threefold.index_progress AS p (ns_id, target, applied)
SELECT s.ns_id, %(target)s, s.applied FROM threefold.index_progress s WHERE s.target = %(successor)s
ON CONFLICT (ns_id, target) DO UPDATE SET applied = excluded.applied

-- name: adopt_letters
-- What a successor can't take are the target's only dead letters.
WITH former AS (
    DELETE FROM threefold.dead_letter d WHERE d.target = %(target)s AND NOT EXISTS (
        SELECT FROM threefold.dead_letter s WHERE s.target = %(successor)s
          AND s.ns_id = d.ns_id AND s.memory_id = d.memory_id)
)
INSERT INTO threefold.dead_letter AS d (target, ns_id, memory_id, version, reason, at)
SELECT %(target)s, s.ns_id, s.memory_id, s.version, s.reason, s.at
FROM threefold.dead_letter s WHERE s.target = %(successor)s
ON CONFLICT (ns_id, memory_id, target) DO UPDATE SET
    version = excluded.version, reason = excluded.reason, at = excluded.at

-- name: end_succession
-- A successor is none any more.
WITH marks AS (
    DELETE FROM threefold.index_mark WHERE target = %(successor)s
), progress AS (
    DELETE FROM threefold.index_progress WHERE target = %(successor)s
), letters AS (
    DELETE FROM threefold.dead_letter WHERE target = %(successor)s
)
DELETE FROM threefold.index_target WHERE target = %(successor)s

-- name: leave_generations
-- None of them is read any more.
UPDATE threefold.index_generation SET left_at = clock_timestamp()
WHERE target = %(target)s AND left_at IS NULL

-- name: note_generation
-- A generation that is read from now on, or a copy that nobody brings forward.
INSERT INTO threefold.index_generation (target, generation, locator, mark, origin, left_at)
VALUES (%(target)s, %(generation)s, %(locator)s, %(mark)s, %(origin)s,
        CASE WHEN NOT %(read)s THEN clock_timestamp() END)
ON CONFLICT (target, generation) DO UPDATE SET
    locator = excluded.locator, mark = excluded.mark, origin = excluded.origin,
    made_at = clock_timestamp(), left_at = excluded.left_at

-- name: kept_generations
-- All that were noted and not forgotten.
SELECT target, generation, locator, mark, origin, made_at, left_at
FROM threefold.index_generation WHERE target = %(target)s ORDER BY generation

-- name: forget_generations
-- These are gone.
DELETE FROM threefold.index_generation
WHERE target = %(target)s AND generation = ANY (%(generations)s::bigint[])

-- name: purged_above
-- A namespace of which a target at these clocks may hold rows that were purged since.
SELECT c.ns_id FROM threefold.ns_clock c
JOIN unnest(%(ns_ids)s::bigint[], %(applied)s::bigint[]) AS s (ns_id, applied) USING (ns_id)
WHERE 0 < s.applied AND s.applied < c.purged LIMIT 1

-- name: forget_terms
-- All counts of terms.
DELETE FROM threefold.term_stat

-- name: count_terms
-- In how many chunks each term stands, in the field where most have it, as the indexes count it; the
-- empty term counts all chunks. A term of one chunk needs no row: whoever scores that chunk has it at
-- hand, and counts it.
WITH held AS (
    SELECT k.words, k.bigrams, m.extra
    FROM threefold.memory m
    JOIN threefold.chunk k ON k.ns_id = m.ns_id AND k.memory_id = m.id
    WHERE {row_held} AND {chunk_held}
), counted AS (
    SELECT f.field, t.term, count(*) AS documents
    FROM held h
    CROSS JOIN LATERAL (VALUES (1, h.words), (2, h.bigrams), (3, h.extra)) AS f (field, tokens)
    CROSS JOIN LATERAL (SELECT DISTINCT unnest(string_to_array(f.tokens, ' ')) AS term) t
    WHERE f.tokens <> ''
    GROUP BY f.field, t.term HAVING count(*) > 1
)
INSERT INTO threefold.term_stat (term, documents)
SELECT term, max(documents) FROM counted WHERE term <> '' GROUP BY term
UNION ALL SELECT '', count(*) FROM held
