-- Version 6. What the source of a copy said of it besides its content: on the web the status and the headers, of a query
-- its columns. And what a refresh of a page has cost on average, in the unit of its budget: of one that found the same
-- content, and of one that brought new content.
ALTER TABLE copies ADD COLUMN meta TEXT NOT NULL DEFAULT '';     -- JSON, '': nothing
ALTER TABLE pages ADD COLUMN cost_same REAL;                     -- NULL: not known
ALTER TABLE pages ADD COLUMN cost_new REAL;
