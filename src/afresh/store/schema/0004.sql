-- Version 4. The inbox: wishes and evidence that other processes hand to the one that runs on the store; what an
-- operator says of a page; and what was written of pages that were removed since.
CREATE TABLE inbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: what was taken is told from what is new
  received REAL NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL                         -- JSON
) STRICT;
-- Keys outlive their entries, so that what is sent again after it took effect does nothing; the oldest are forgotten.
CREATE TABLE inbox_keys (
  key TEXT PRIMARY KEY,
  number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_keys_by_number ON inbox_keys (number);
ALTER TABLE totals ADD COLUMN inbox_entries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN inbox_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN removed_crawls INTEGER NOT NULL DEFAULT 0;  -- of pages that are not here any more
ALTER TABLE pages ADD COLUMN importance_factor REAL;             -- times what is learned; `importance` is requests a second
ALTER TABLE pages ADD COLUMN popularity REAL;                    -- by others' reports, in times the average page
ALTER TABLE pages ADD COLUMN shortest REAL;                      -- seconds between two crawls, at least
ALTER TABLE pages ADD COLUMN longest REAL;                       -- and at most
ALTER TABLE pages ADD COLUMN hours TEXT NOT NULL DEFAULT '';     -- when it may be crawled; '': at any time
ALTER TABLE pages ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;  -- to be crawled before all others
UPDATE pages SET importance_factor = -importance, importance = NULL WHERE importance < 0;
