"""How far the validators of a host move when its content changes: every crawl with content shows that whole."""

import math
from dataclasses import dataclass

ETAG, LAST_MODIFIED = "ETag", "Last-Modified"  # a validator that moves says that the page changed
FADE = 1.0 / 512  # of what was counted, that is forgotten with a crawl
QUANTILE = 1.64  # of the normal distribution: nine of ten lie within


@dataclass(slots=True)
class Counted:
    """What is counted of one validator of a host."""

    all_moves: float = 0.0
    moves: float = 0.0  # from here on, faded
    right: float = 0.0  # of them, when the content had changed
    changes: float = 0.0

    def note(self, *, moved: bool, changed: bool) -> None:
        """A crawl has brought content."""
        self.all_moves += moved
        for name, more in (("moves", moved), ("right", moved and changed), ("changes", changed)):
            setattr(self, name, getattr(self, name) * (1.0 - FADE) + more)

    def share(self, of: float) -> tuple[float | None, tuple[float, float]]:
        """The share of moves or changes that were both, and its range; nothing, if there were none."""
        return (None if of <= 0 else (self.right + 1.0) / (of + 2.0)), wilson(self.right, of)


def wilson(right: float, of: float) -> tuple[float, float]:
    """Wilson's interval for a share, nine times in ten."""
    if of <= 0:
        return 0.0, 1.0
    share, z = min(right / of, 1.0), QUANTILE
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(middle - half, 0.0), min(middle + half, 1.0)
