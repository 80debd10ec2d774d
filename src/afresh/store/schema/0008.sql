-- Version 8. What finds pages for people who look through a long list: those that were checked longest ago, those that
-- are paused, and those that have no copy yet.
CREATE INDEX pages_by_checked ON pages (checked) WHERE checked IS NOT NULL;
CREATE INDEX pages_paused ON pages (number) WHERE paused;
CREATE INDEX pages_without_copy ON pages (number) WHERE fetched IS NULL;
