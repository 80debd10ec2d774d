-- Version 9. Who is told of changes: how far each rule has read them, and messages that are not delivered yet. A message
-- enters in the transaction that moves its rule on, and leaves once it was delivered.
CREATE TABLE notifiers (
  name TEXT PRIMARY KEY,
  position INTEGER NOT NULL,                 -- the number of the last change that the rule has seen
  delivered INTEGER NOT NULL DEFAULT 0,      -- messages, ever
  failures INTEGER NOT NULL DEFAULT 0,       -- in a row, up to now
  problem ANY NOT NULL DEFAULT '',           -- of the last of them
  since REAL,                                -- the first of them
  last REAL                                  -- when a message was last delivered
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  rule TEXT NOT NULL,
  state TEXT NOT NULL,                       -- waiting; gathered, for a digest; dead, given up
  id TEXT NOT NULL,                          -- the same at every attempt
  made REAL NOT NULL,
  due REAL NOT NULL,                         -- not before
  tries INTEGER NOT NULL DEFAULT 0,
  problem ANY NOT NULL DEFAULT '',
  body TEXT NOT NULL                         -- JSON
) STRICT;
CREATE INDEX outbox_by_rule ON outbox (rule, state, number);
