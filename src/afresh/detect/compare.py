"""From what was fetched and what is kept to a verdict."""

from afresh.detect.fingerprint import fingerprint
from afresh.types import Fetched, Outcome, Validators, Verdict

REFUSALS = frozenset({"refused_address", "refused_port", "robots", "scope"})


def compare(known: Validators, fetched: Fetched) -> Verdict:
    """What came of a fetch, given the validators and fingerprint of the kept copy (if there is one)."""
    if fetched.reason:
        outcome = Outcome.REFUSED if fetched.reason in REFUSALS else Outcome.FAILED
        return Verdict(outcome, reason=fetched.reason)
    status = fetched.status
    if status == 304:
        if known.fingerprint:
            return Verdict(Outcome.UNCHANGED, fingerprint=known.fingerprint)
        return Verdict(Outcome.FAILED, reason="not_modified_without_copy")
    if status in (200, 203):
        return _compare_content(known, fetched)
    if status in (404, 410):
        return Verdict(Outcome.GONE, reason=f"status_{status}")
    if status in (429, 503):
        return Verdict(Outcome.BUSY, reason=f"status_{status}")
    if 300 <= status < 400:
        return Verdict(Outcome.MOVED, reason=f"status_{status}")
    return Verdict(Outcome.FAILED, reason=f"status_{status}")


def _compare_content(known: Validators, fetched: Fetched) -> Verdict:
    mark = fingerprint(fetched.body, fetched.content_type)
    if not known.fingerprint:
        return Verdict(Outcome.NEW, significance=1.0, fingerprint=mark)
    if mark == known.fingerprint:
        return Verdict(Outcome.UNCHANGED, fingerprint=mark)
    return Verdict(Outcome.CHANGED, significance=1.0, fingerprint=mark)
