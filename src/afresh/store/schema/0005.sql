-- Version 5. Why a host fails and since when; how often it was asked of late; and what finds the pages that fail.
ALTER TABLE hosts ADD COLUMN reason ANY NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN since REAL;
ALTER TABLE hosts ADD COLUMN asked REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN recent_asks REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN recent_seconds REAL NOT NULL DEFAULT 0;
CREATE INDEX pages_that_fail ON pages (failures) WHERE failures > 0;
