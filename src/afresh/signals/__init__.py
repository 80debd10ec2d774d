"""Change hints come in: what publishers say of their own changes.

A source is read by a pure function, bytes in and a value out (`sitemap`, on `markup` and `moments`). Whoever fetched
it makes pages of the addresses and `Signal`s of the moments: a hint that a page is newer than its copy. What such a
hint is worth is learned, source by source, from what crawls find; nothing here is believed.
"""

from afresh.signals.sitemap import Entry, Sitemap, read_sitemap

__all__ = ["Entry", "Sitemap", "read_sitemap"]
