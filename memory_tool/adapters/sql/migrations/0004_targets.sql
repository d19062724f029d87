-- A generation is named by the hash of its manifest where it is files, by its index's name where it
-- is on a server.
ALTER TABLE threefold.index_target RENAME COLUMN manifest_sha256 TO locator;
