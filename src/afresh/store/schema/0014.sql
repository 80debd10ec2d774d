-- Version 14. A name that no other store has, for feeds that are read elsewhere: it stays, wherever the store is moved to.
ALTER TABLE totals ADD COLUMN identity TEXT NOT NULL DEFAULT '';
UPDATE totals SET identity = lower(hex(randomblob(16)));
