"""Did it really change: what a page says, its marks, and their comparison.

A fetch comes back. If the server itself says "not modified", that settles it; so do bytes that are the same as before.
Otherwise the content is cleaned of what changes without meaning (`extract`) and compared by its mark; if that differs,
fuzzy signatures (`fingerprint`) tell how much of it changed. The engine learns from the verdict (`compare`).
"""

from afresh.detect.compare import Detector, compare
from afresh.detect.extract import Rules, main_text
from afresh.detect.fingerprint import distance, mark, signature

__all__ = ["Detector", "Rules", "compare", "distance", "main_text", "mark", "signature"]
