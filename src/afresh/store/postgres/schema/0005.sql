-- Version 5. Since when a page is gone, as in version 11 of a file; and what finds pages for who looks through a long list:
-- those that are gone, fail or are paused. These columns hardly ever change, so that a crawl still touches no index.
SET LOCAL search_path = afresh;
ALTER TABLE pages ADD COLUMN gone double precision;
UPDATE pages SET gone = (SELECT min(time) FROM crawls AS c WHERE c.slice = pages.slice AND c.page = pages.number
    AND outcome = 'gone' AND nth > coalesce((SELECT max(nth) FROM crawls AS d WHERE d.slice = pages.slice
      AND d.page = pages.number AND outcome NOT IN ('gone', 'failed', 'busy', 'refused')), 0))
  WHERE failures > 0;
CREATE INDEX pages_gone ON pages (gone, number) WHERE gone IS NOT NULL;
CREATE INDEX pages_failing ON pages (failures, number) WHERE failures > 0 AND gone IS NULL;
CREATE INDEX pages_by_failures ON pages (failures, number) WHERE failures > 0;
CREATE INDEX pages_paused ON pages (number) WHERE paused <> 0;
