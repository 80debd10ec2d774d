"""From what was fetched and what is kept to a verdict."""

from collections.abc import Mapping
from dataclasses import replace

from afresh.detect.extract import NO_RULES, Rules, main_text
from afresh.detect.fingerprint import distance, mark, signature
from afresh.types import Fetched, Outcome, Validators, Verdict

REFUSALS = frozenset({"refused_address", "refused_port", "robots", "scope"})
LEAST = 1 / 64  # significance of a change that the fuzzy signature cannot see


class Detector:
    """Says what came of a fetch, site by site: `rules` maps a host to what counts there."""

    def __init__(self, rules: Mapping[str, Rules] | None = None) -> None:
        self.rules = dict(rules or {})

    def compare(self, known: Validators, fetched: Fetched, host: str = "") -> Verdict:
        """What came of a fetch, given the validators of the kept copy (if there is one)."""
        if fetched.reason:
            outcome = Outcome.REFUSED if fetched.reason in REFUSALS else Outcome.FAILED
            return Verdict(outcome, reason=fetched.reason)
        status = fetched.status
        if status == 304:
            if known.fingerprint:
                return Verdict(Outcome.UNCHANGED, validators=known)
            return Verdict(Outcome.FAILED, reason="not_modified_without_copy")
        if status in (200, 203):
            rules = self.rules.get(host) or self.rules.get(host.partition(":")[0]) or NO_RULES
            return _compare_content(known, fetched, rules)
        return Verdict(
            _OUTCOMES.get(status, Outcome.MOVED if 300 <= status < 400 else Outcome.FAILED), reason=f"status_{status}"
        )


_OUTCOMES = {404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.BUSY, 503: Outcome.BUSY}


def compare(known: Validators, fetched: Fetched) -> Verdict:
    """What came of a fetch, without rules of the site's own."""
    return Detector().compare(known, fetched)


def _compare_content(known: Validators, fetched: Fetched, rules: Rules) -> Verdict:
    """The bytes first, because that is cheap; then what they say; then how far that differs."""
    raw = mark(fetched.body)
    if known.fingerprint and raw == known.raw:
        same = replace(fetched.validators, fingerprint=known.fingerprint, raw=raw, signature=known.signature)
        return Verdict(Outcome.UNCHANGED, validators=same)
    fingerprint, fuzzy = raw, 0
    # A page whose main text cannot be told apart (a bare redirect page, a frame set) is compared as it is.
    if "html" in fetched.content_type.lower() and (text := main_text(fetched.body, rules)):
        fingerprint, fuzzy = mark(text.encode()), signature(text)
    now = replace(fetched.validators, fingerprint=fingerprint, raw=raw, signature=fuzzy)
    if not known.fingerprint:
        return Verdict(Outcome.NEW, significance=1.0, validators=now)
    if fingerprint == known.fingerprint:
        return Verdict(Outcome.UNCHANGED, validators=now)
    known_both = known.signature and fuzzy
    significance = max(LEAST, distance(known.signature, fuzzy)) if known_both else 1.0
    return Verdict(Outcome.CHANGED, significance=significance, validators=now)
