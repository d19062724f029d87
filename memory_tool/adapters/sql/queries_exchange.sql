-- Statements of export and import: all that is known of a memory, out and in.

-- name: put_versions
-- Old versions of adopted memories.
INSERT INTO threefold.memory_version (ns_id, memory_id, version, image, replaced_at)
SELECT %(ns_id)s, v.id, v.version, v.image, v.replaced_at
FROM json_to_recordset(%(found)s::json) AS v (
    id uuid, version int, image jsonb, replaced_at timestamptz)

-- name: note_arrival
-- Adopted memories were looked at just now, however old they are: none goes cold in its first night.
INSERT INTO threefold.memory_use (ns_id, memory_id, uses, used_at)
SELECT %(ns_id)s, a.id, 0, now() FROM unnest(%(ids)s::uuid[]) AS a (id)
ON CONFLICT (ns_id, memory_id) DO UPDATE SET used_at = excluded.used_at

-- name: put_relations
-- Relations of adopted memories.
INSERT INTO threefold.relation (ns_id, from_id, kind, to_id, properties, created_at)
SELECT %(ns_id)s, r.id, r.kind, r."to", coalesce(r.properties, '{}'), coalesce(r.created_at, now())
FROM json_to_recordset(%(found)s::json) AS r (
    id uuid, kind text, "to" uuid, properties jsonb, created_at timestamptz)
ON CONFLICT (ns_id, from_id, kind, to_id) DO NOTHING

-- name: put_reviews
-- Reviews of adopted memories.
INSERT INTO threefold.review (ns_id, memory_id, kind, proposal, created_at, decided_at)
SELECT %(ns_id)s, r.id, r.kind, r.proposal, coalesce(r.created_at, now()), r.decided_at
FROM json_to_recordset(%(found)s::json) AS r (
    id uuid, kind text, proposal jsonb, created_at timestamptz, decided_at timestamptz)

-- name: exported_namespaces
-- Every namespace, the oldest first.
SELECT address FROM threefold.namespace WHERE retired_at IS NULL ORDER BY ns_id

-- name: exported_memories
-- All that is known of the memories of a namespace, in the order in which they were written last.
SELECT to_jsonb(m),
       (SELECT coalesce(jsonb_agg(v.image ORDER BY v.version), '[]')
        FROM threefold.memory_version v WHERE v.ns_id = m.ns_id AND v.memory_id = m.id),
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'kind', r.kind, 'to', encode(uuid_send(r.to_id), 'hex'),
                   'properties', r.properties, 'created_at', r.created_at)
                   ORDER BY r.kind, r.to_id), '[]')
        FROM threefold.relation r WHERE r.ns_id = m.ns_id AND r.from_id = m.id),
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'kind', w.kind, 'proposal', w.proposal, 'created_at', w.created_at,
                   'decided_at', w.decided_at) ORDER BY w.review_id), '[]')
        FROM threefold.review w WHERE w.ns_id = m.ns_id AND w.memory_id = m.id),
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'start', k.start, 'stop', k.stop, 'language', k.language,
                   'vector', CASE WHEN %(with_vectors)s
                             THEN translate(encode({@vector}, 'base64'), E'\n', '') END)
                   ORDER BY k.ordinal), '[]')
        FROM threefold.chunk k WHERE k.ns_id = m.ns_id AND k.memory_id = m.id),
       CASE WHEN %(with_vectors)s
       THEN (SELECT s.name FROM threefold.embedding_space s WHERE s.state = 'active') END
FROM threefold.memory m
WHERE m.ns_id = %(ns_id)s AND m.nseq > 0 AND m.state <> 'deleted'
  AND (m.expires_at IS NULL OR m.expires_at > now())
ORDER BY m.nseq

-- name: exported_nodes
-- The tree of a namespace, parents first.
SELECT node_id, parent_id, name, properties FROM threefold.node
WHERE ns_id = %(ns_id)s ORDER BY node_id

-- name: ensured_namespace
-- The number of a namespace, made if it is new.
SELECT threefold.ensure_namespace(
    %(address)s, %(address_hash)s, %(project)s, %(user)s, %(agent)s, %(path)s)

-- name: put_node
-- A node of a tree, unless its parent has one of that name; its number.
WITH found AS (
    SELECT node_id FROM threefold.node
    WHERE ns_id = %(ns_id)s AND parent_id IS NOT DISTINCT FROM %(parent)s::bigint
      AND name = %(name)s
), made AS (
    INSERT INTO threefold.node (ns_id, parent_id, name, properties)
    SELECT %(ns_id)s, %(parent)s, %(name)s, %(properties)s::jsonb
    WHERE NOT EXISTS (SELECT FROM found)
    RETURNING node_id
)
SELECT node_id FROM found UNION ALL SELECT node_id FROM made LIMIT 1
