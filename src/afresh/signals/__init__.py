"""Change hints come in: what publishers say about their own changes.

A list or a log is read by a pure function, bytes in and a value out (`sitemap`, on `markup` and `moments`). The caller
makes pages from the addresses and `Signal`s from the moments: a hint that a page is newer than its copy. What such a
hint is worth is learned, sender by sender, from what crawls find; nothing here is believed.
"""

from afresh.signals.sitemap import Entry, Sitemap, read_sitemap

__all__ = ["Entry", "Sitemap", "read_sitemap"]
