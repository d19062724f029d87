-- Generations of indexes that were read and are kept for a way back: an index's mark has to be known
-- for as long as the index may be read again.
CREATE TABLE threefold.index_generation (
    target text NOT NULL,
    generation bigint NOT NULL,
    locator text NOT NULL,
    mark text NOT NULL,
    -- 'incremental': brought forward from the one before; 'full': built from nothing.
    origin text NOT NULL CHECK (origin IN ('incremental', 'full')),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Since when it is read and brought forward no more: what is deleted later stays in it.
    left_at timestamptz,
    PRIMARY KEY (target, generation)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON threefold.index_generation TO threefold_worker;
