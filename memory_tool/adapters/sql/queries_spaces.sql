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
