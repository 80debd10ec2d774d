"""Did it really change: fingerprints of the content that matters, and their comparison.

A fetch comes back. If the server itself says "not modified", that settles it. Otherwise the content is cleaned of what
changes without meaning (`fingerprint`) and compared with what is kept (`compare`); the engine learns from the verdict.
"""

from afresh.detect.compare import compare
from afresh.detect.fingerprint import fingerprint, main_text

__all__ = ["compare", "fingerprint", "main_text"]
