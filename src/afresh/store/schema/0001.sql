-- Version 1. One file on purpose: copy, history and beliefs of a crawl must commit together, and with a WAL a
-- transaction over attached files is atomic in each file only, not across them.
-- Columns of type ANY hold text from the network: text, or a blob where it is not valid Unicode.

CREATE TABLE pages (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so that `states(after=n)` misses nothing
  url TEXT NOT NULL UNIQUE,
  host TEXT NOT NULL,
  added REAL NOT NULL,
  importance REAL,
  request_rate REAL,                         -- the beliefs; NULL: none yet
  change_rate REAL,
  recall REAL,
  false_rate REAL,
  observations INTEGER,
  etag ANY NOT NULL DEFAULT '',
  last_modified ANY NOT NULL DEFAULT '',
  fingerprint INTEGER NOT NULL DEFAULT 0,    -- 64 bits, as a signed number
  fetched REAL,                              -- NULL: no copy
  checked REAL,
  signals INTEGER NOT NULL DEFAULT 0,
  crawls INTEGER NOT NULL DEFAULT 0,
  changes INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  learned BLOB NOT NULL DEFAULT x'',
  written INTEGER NOT NULL DEFAULT 0,        -- crawls ever written to the history
  body_bytes INTEGER NOT NULL DEFAULT 0,     -- of the copy, before compression
  stored_bytes INTEGER NOT NULL DEFAULT 0    -- and after
) STRICT;

-- The body comes last, so that the small columns are read without it.
CREATE TABLE copies (
  page INTEGER PRIMARY KEY REFERENCES pages (number),
  content_type ANY NOT NULL,
  fetched REAL NOT NULL,
  etag ANY NOT NULL,
  last_modified ANY NOT NULL,
  fingerprint INTEGER NOT NULL,
  size INTEGER NOT NULL,
  checksum INTEGER NOT NULL,                 -- xxh3 of the body, 64 bits, as a signed number
  body BLOB NOT NULL                         -- a zstd frame
) STRICT;

CREATE TABLE crawls (
  page INTEGER NOT NULL REFERENCES pages (number),
  nth INTEGER NOT NULL,                      -- 1 for the page's first
  time REAL NOT NULL,
  outcome TEXT NOT NULL,
  elapsed REAL,
  signals INTEGER NOT NULL,
  took REAL NOT NULL,
  status INTEGER NOT NULL,
  size INTEGER NOT NULL,
  significance REAL NOT NULL,
  reason ANY NOT NULL,
  fresh_probability REAL,
  PRIMARY KEY (page, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE hosts (
  host TEXT PRIMARY KEY,
  ready REAL NOT NULL,
  failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE named (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row, kept up in every transaction: counting a million pages takes too long for a status line.
CREATE TABLE totals (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  pages INTEGER NOT NULL DEFAULT 0,
  copies INTEGER NOT NULL DEFAULT 0,
  crawls INTEGER NOT NULL DEFAULT 0,
  changes INTEGER NOT NULL DEFAULT 0,
  body_bytes INTEGER NOT NULL DEFAULT 0,
  stored_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO totals (id) VALUES (1);
