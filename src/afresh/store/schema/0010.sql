-- Version 10. How surely the rate of a page's silent changes is known: the shape of the Gamma distribution that it is
-- taken to have. Without it nobody but the runner could say what a copy's probability of being fresh is.
ALTER TABLE pages ADD COLUMN shape REAL;                         -- NULL: known exactly
