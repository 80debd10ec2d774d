"""Pages that a worker finds and another one owns: through a small memory of what was just sent, and into the store."""

import numpy as np
import xxhash

from afresh.frontier.cache import Clock
from afresh.store.slices import slice_of
from afresh.types import Page

REMEMBERED = 1 << 16  # addresses: most links of a page were met a moment ago


class Travel:
    """Tells our own pages from those of others, of which it leaves out those that were sent of late.

    They become durable with the crawl that found them, in its batch; their owner sees them there as new ones.
    """

    def __init__(self, slices: frozenset[int]) -> None:
        self._slices = slices
        self._sent = Clock(REMEMBERED)
        self.found = self.left_out = 0

    def divided(self, pages: list[Page]) -> tuple[list[Page], list[Page]]:
        """(ours, those of other workers that they may not have heard of)."""
        ours: list[Page] = []
        theirs: list[Page] = []
        for page in pages:
            (ours if slice_of(page.url) in self._slices else theirs).append(page)
        if not theirs:
            return ours, theirs
        marks = np.array([xxhash.xxh3_64_intdigest(page.url.encode()) for page in theirs], np.uint64)
        met = self._sent.met_many(marks)
        self.found += len(theirs)
        self.left_out += int(met.sum())
        return ours, [page for page, known in zip(theirs, met.tolist(), strict=True) if not known]
