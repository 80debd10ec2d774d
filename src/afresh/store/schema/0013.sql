-- Version 13. How often in a row the latest crawls of a page failed, counted at each crawl, for who is told of that. A page
-- that is gone does not fail, unless it never had a copy; a store without room is no failure of its pages.
ALTER TABLE pages ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;  -- n: the n-th that failed; −n: well again after n
UPDATE pages SET trouble = failures WHERE failures > 0 AND gone IS NULL;
CREATE INDEX troubles_by_serial ON crawls (serial) WHERE trouble <> 0;
