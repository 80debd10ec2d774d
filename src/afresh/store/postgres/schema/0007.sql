-- Version 7. How often in a row the latest crawls of a page failed, as in version 13 of a file.
SET LOCAL search_path = afresh;
ALTER TABLE pages ADD COLUMN trouble bigint NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN trouble bigint NOT NULL DEFAULT 0;
UPDATE pages SET trouble = failures WHERE failures > 0 AND gone IS NULL;
CREATE INDEX troubles_by_serial ON crawls (serial) WHERE trouble <> 0;
