-- Version 3. What is known of a page's noise. The fingerprint is of the bytes from now on; an older one, of the cleaned
-- content, equals none of these, and the page is compared with its copy. The columns `raw` and `signature` are not used
-- any more; they stay, because dropping them would write every body again.
ALTER TABLE pages ADD COLUMN noise TEXT NOT NULL DEFAULT '';
