-- Version 7. Earlier versions of pages: what a copy was before a crawl found another. And which crawl brought the content
-- that a page has now, by its number among the changes; 0: that was before these were kept.
ALTER TABLE pages ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
CREATE TABLE versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,      -- in the order in which they were replaced: the oldest leave first
  page INTEGER NOT NULL REFERENCES pages (number),
  number INTEGER NOT NULL,                   -- of the crawl that brought it
  replaced_by INTEGER NOT NULL,              -- and of the one that found another content
  replaced REAL NOT NULL,
  fetched REAL NOT NULL,
  content_type ANY NOT NULL,
  size INTEGER NOT NULL,
  checksum INTEGER NOT NULL,                 -- as in copies
  stored INTEGER NOT NULL,                   -- bytes of the body here
  body BLOB NOT NULL                         -- the zstd frame that the copy was
) STRICT;
CREATE INDEX versions_by_page ON versions (page, number);
