-- Version 12. The title of a page's copy, for lists; '': it has none, or was kept before titles were.
ALTER TABLE pages ADD COLUMN title TEXT NOT NULL DEFAULT '';
