-- Version 2. Whether the workers of a cluster are to run.
ALTER TABLE cluster ADD COLUMN running boolean NOT NULL DEFAULT false;
