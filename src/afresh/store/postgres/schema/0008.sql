-- Version 8. A name that no other store has, as in version 14 of a file.
SET LOCAL search_path = afresh;
ALTER TABLE cluster ADD COLUMN identity text NOT NULL DEFAULT '';
UPDATE cluster SET identity = replace(gen_random_uuid()::text, '-', '');
