-- Version 3. How surely the rate of a page's silent changes is known; NULL: exactly.
ALTER TABLE pages ADD COLUMN shape double precision;
