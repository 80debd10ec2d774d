-- Version 11. Since when a page is gone, as its crawls say; and what finds such pages, and those that fail and are there.
ALTER TABLE pages ADD COLUMN gone REAL;                          -- NULL: it is there, as far as anybody knows
UPDATE pages SET gone = (SELECT min(time) FROM crawls WHERE page = number AND outcome = 'gone' AND nth >
    coalesce((SELECT max(nth) FROM crawls WHERE page = number AND outcome NOT IN ('gone', 'failed', 'busy', 'refused')), 0))
  WHERE failures > 0;
CREATE INDEX pages_gone ON pages (gone) WHERE gone IS NOT NULL;
CREATE INDEX pages_failing ON pages (failures) WHERE failures > 0 AND gone IS NULL;
