-- The truth: memories, their chunks and versions, the clocks that make the memory table a log,
-- and what appliers and jobs remember. Run as threefold_owner; roles come from roles.sql.
--
-- Rows of a namespace are visible to threefold_app only inside a transaction that has set
-- threefold.namespaces; threefold_worker sees all; threefold_reader owns the functions that search
-- by operators which row-level security would keep from their indexes.

CREATE SCHEMA threefold;
GRANT USAGE ON SCHEMA threefold TO threefold_app, threefold_worker, threefold_reader;

CREATE TABLE threefold.store_meta (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    cluster_id uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO threefold.store_meta DEFAULT VALUES;

-- Which vectors may be compared. One space is active; others are kept while a change of model runs.
CREATE TABLE threefold.embedding_space (
    space_id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    definition jsonb NOT NULL,
    active boolean NOT NULL DEFAULT true
);
CREATE UNIQUE INDEX one_active_space ON threefold.embedding_space (active) WHERE active;

CREATE TABLE threefold.namespace (
    ns_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text NOT NULL,
    -- SHA-256 of the address: an id may be longer than a btree entry.
    address_hash bytea NOT NULL,
    project text,
    "user" text,
    agent text,
    path text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz
);
CREATE UNIQUE INDEX namespace_address ON threefold.namespace (address_hash)
    WHERE retired_at IS NULL;
CREATE INDEX namespace_user ON threefold.namespace (hashtextextended("user", 0))
    WHERE retired_at IS NULL;
CREATE INDEX namespace_project ON threefold.namespace (hashtextextended(project, 0))
    WHERE retired_at IS NULL;
CREATE INDEX namespace_agent ON threefold.namespace (hashtextextended(agent, 0))
    WHERE retired_at IS NULL;
CREATE INDEX namespace_path ON threefold.namespace (hashtextextended(path[1], 0))
    WHERE retired_at IS NULL;

-- A clock is bumped inside each writing transaction and never goes back; its row lock is the
-- namespace's lock. The stamp is random: equal clocks of two histories have different stamps.
-- changed_at is cut to the minute: while no indexed column changes, an update writes no index and
-- leaves nothing for the next one to walk over.
CREATE TABLE threefold.ns_clock (
    ns_id bigint PRIMARY KEY,
    nseq bigint NOT NULL DEFAULT 0,
    stamp bigint NOT NULL DEFAULT 0,
    purged bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX clock_changed ON threefold.ns_clock (changed_at);

CREATE TABLE threefold.memory (
    ns_id bigint NOT NULL,
    id uuid NOT NULL,
    nseq bigint NOT NULL,
    vector_nseq bigint NOT NULL,
    keyword_nseq bigint NOT NULL,
    state text NOT NULL,
    version int NOT NULL,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    dedup_hash bytea,
    key text,
    -- SHA-256 of the key: a key may be longer than a btree entry, and an expression in its place
    -- could not serve behind row-level security, since no hash function is leakproof.
    key_hash bytea,
    type text NOT NULL,
    confidence double precision NOT NULL,
    importance smallint,
    pinned boolean NOT NULL,
    tags jsonb NOT NULL,
    source jsonb NOT NULL,
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    occurred_at timestamptz,
    event_time timestamptz NOT NULL GENERATED ALWAYS AS (coalesce(occurred_at, created_at)) STORED,
    expires_at timestamptz,
    verified_at timestamptz,
    run_id text,
    conversation_id text,
    turn_position int,
    turn_role text,
    turn_name text,
    tier text NOT NULL,
    -- Tokens of tags, source path and metadata strings: searched at low weight.
    extra text NOT NULL,
    chunk_high int NOT NULL,
    PRIMARY KEY (ns_id, id),
    CONSTRAINT a_tombstone_says_nothing CHECK (
        state <> 'deleted'
        OR (content = '' AND extra = '' AND dedup_hash IS NULL AND key IS NULL
            AND tags = '[]' AND source = '{}' AND metadata = '{}'))
);
-- A search fetches ids that may lie in any of a thousand namespaces. Unique, though the key of the
-- table has the namespace too: that promise makes every planner, also one without statistics, fetch
-- one row by it instead of reading a namespace (60 ms against 1). Ids are random and made here, so
-- nobody can ask by it whether another namespace holds an id.
CREATE UNIQUE INDEX memory_id ON threefold.memory (id);
-- All that an applier reads: what changed above a number.
CREATE UNIQUE INDEX memory_log ON threefold.memory (ns_id, nseq);
CREATE UNIQUE INDEX memory_dedup ON threefold.memory (ns_id, dedup_hash)
    WHERE dedup_hash IS NOT NULL;
CREATE UNIQUE INDEX memory_key ON threefold.memory (ns_id, key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX memory_listing ON threefold.memory (ns_id, event_time DESC, id)
    WHERE state = 'live';
CREATE INDEX memory_turn ON threefold.memory (ns_id, conversation_id, turn_position)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX memory_metadata ON threefold.memory USING gin (metadata jsonb_path_ops)
    WHERE state = 'live' AND metadata <> '{}';
CREATE INDEX memory_extra ON threefold.memory USING gin (string_to_array(extra, ' '))
    WHERE state = 'live' AND extra <> '';

CREATE TABLE threefold.chunk (
    ns_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    ordinal smallint NOT NULL,
    start int NOT NULL,
    stop int NOT NULL,
    language text NOT NULL,
    words text NOT NULL,
    bigrams text NOT NULL,
    -- IEEE half floats, little endian: a unit vector loses under 0.001 of a cosine and half the disk.
    embedding bytea,
    PRIMARY KEY (ns_id, memory_id, ordinal)
);
ALTER TABLE threefold.chunk ALTER COLUMN embedding SET STORAGE EXTERNAL;
-- Keyword search without a keyword index.
CREATE INDEX chunk_tokens ON threefold.chunk
    USING gin (string_to_array(words || ' ' || bigrams, ' '));
-- What the embedder still owes.
CREATE INDEX chunk_without_vector ON threefold.chunk (ns_id, memory_id) WHERE embedding IS NULL;

CREATE TABLE threefold.memory_version (
    ns_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    version int NOT NULL,
    image jsonb NOT NULL,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (ns_id, memory_id, version)
);

CREATE TABLE threefold.relation (
    ns_id bigint NOT NULL,
    from_id uuid NOT NULL,
    kind text NOT NULL,
    to_id uuid NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns_id, from_id, kind, to_id)
);

CREATE TABLE threefold.node (
    ns_id bigint NOT NULL,
    node_id bigint GENERATED ALWAYS AS IDENTITY,
    parent_id bigint,
    name text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (ns_id, node_id)
);

CREATE TABLE threefold.review (
    ns_id bigint NOT NULL,
    review_id bigint GENERATED ALWAYS AS IDENTITY,
    memory_id uuid NOT NULL,
    kind text NOT NULL,
    proposal jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    PRIMARY KEY (ns_id, review_id)
);

-- Who changed what. Without content: an erased memory leaves its number here, nothing more.
CREATE TABLE threefold.audit (
    ns_id bigint NOT NULL,
    nseq bigint NOT NULL,
    memory_id uuid NOT NULL,
    version int NOT NULL,
    action text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (ns_id, nseq)
);

-- The answers already given. The key is kept as its SHA-256 only.
CREATE TABLE threefold.idempotency (
    ns_id bigint NOT NULL,
    key_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    response jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns_id, key_hash)
);
CREATE INDEX idempotency_age ON threefold.idempotency (created_at);

-- A target follows the log: the files of one data folder, or an Elasticsearch index.
CREATE TABLE threefold.index_target (
    target text PRIMARY KEY,
    generation bigint NOT NULL DEFAULT 0,
    manifest_sha256 text NOT NULL DEFAULT '',
    mark text,
    seen_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE threefold.index_progress (
    target text NOT NULL,
    ns_id bigint NOT NULL,
    applied bigint NOT NULL,
    PRIMARY KEY (ns_id, target)
);

-- A mark is random and known to one history only: an index whose mark is missing here comes from
-- another one, whatever its clocks say.
CREATE TABLE threefold.index_mark (
    target text NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    mark text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (target, mark)
);
CREATE INDEX mark_age ON threefold.index_mark (target, seq);

CREATE TABLE threefold.dead_letter (
    target text NOT NULL,
    ns_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    version bigint NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns_id, memory_id, target)
);

CREATE TABLE threefold.lease (
    name text PRIMARY KEY,
    holder text NOT NULL,
    expires timestamptz NOT NULL
);

CREATE TABLE threefold.job (
    kind text NOT NULL,
    target text NOT NULL,
    period text NOT NULL,
    state text NOT NULL DEFAULT 'offered',
    progress jsonb NOT NULL DEFAULT '{}',
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, target, period)
);

CREATE TABLE threefold.erase_ledger (
    ns_id bigint NOT NULL,
    line bigint GENERATED ALWAYS AS IDENTITY,
    memory_id uuid,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns_id, line)
);

-- In how many chunks a term stands; the empty term counts all chunks. Renewed by rebuilds.
CREATE TABLE threefold.term_stat (
    term text PRIMARY KEY,
    documents bigint NOT NULL
);
