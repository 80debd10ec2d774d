-- Version 2. Two more marks of the content; how far a page is from those that were named; and a number for every crawl
-- in the order of their writing, so that a reader of changes can go on exactly where it was.
ALTER TABLE pages ADD COLUMN raw INTEGER NOT NULL DEFAULT 0;        -- 64 bits of the bytes, as a signed number
ALTER TABLE pages ADD COLUMN signature INTEGER NOT NULL DEFAULT 0;  -- 64 fuzzy bits of the cleaned content
ALTER TABLE pages ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;      -- links from a page that was named
ALTER TABLE copies ADD COLUMN raw INTEGER NOT NULL DEFAULT 0;
ALTER TABLE copies ADD COLUMN signature INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN serial INTEGER NOT NULL DEFAULT 0;    -- 0: written before there were numbers
CREATE INDEX changes_by_serial ON crawls (serial) WHERE outcome IN ('new', 'changed', 'gone') AND serial > 0;
