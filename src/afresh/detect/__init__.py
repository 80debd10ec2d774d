"""Did it really change: the blocks of text that a page shows, their comparison, and what is noise among them.

If the server itself says "not modified", that settles it; so do bytes that are the same as before. Otherwise old and
new blocks are compared (`difference`), and what differs at nearly every fetch is left out (`noise`). The engine learns
from the verdict (`compare`).
"""

from afresh.detect.compare import Detector, Look, Rules, compare, judge, learn
from afresh.detect.difference import Difference, Spot, difference
from afresh.detect.fingerprint import mark
from afresh.detect.noise import Habit, Habits

__all__ = [
    "Detector",
    "Difference",
    "Habit",
    "Habits",
    "Look",
    "Rules",
    "Spot",
    "compare",
    "difference",
    "judge",
    "learn",
    "mark",
]
