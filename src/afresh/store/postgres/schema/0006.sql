-- Version 6. The title of a page's copy, as in version 12 of a file.
SET LOCAL search_path = afresh;
ALTER TABLE pages ADD COLUMN title text NOT NULL DEFAULT '';
