"""From what was fetched and what is kept to a verdict.

Reading a page (cleaning it of what says nothing, and the fuzzy signature) costs many times as much as all else that is
done with it, and a page that stays as it is need never be read. So where the kept copy is at hand, a first copy is
marked by its bytes alone, and read when other bytes come.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from afresh.detect.extract import NO_RULES, Rules, main_text
from afresh.detect.fingerprint import distance, mark, signature
from afresh.types import Copy, Fetched, Outcome, Validators, Verdict

Kept = Callable[[], Copy | None]

REFUSALS = frozenset({"refused_address", "refused_port", "robots", "scope", "names_of_address"})
LEAST = 1 / 64  # significance of a change that the fuzzy signature cannot see


class Detector:
    """Says what came of a fetch, site by site: `rules` maps a host to what counts there."""

    def __init__(self, rules: Mapping[str, Rules] | None = None) -> None:
        self.rules = dict(rules or {})

    def compare(self, known: Validators, fetched: Fetched, host: str = "", *, kept: Kept | None = None) -> Verdict:
        """What came of a fetch, given the validators of the kept copy (if there is one).

        `kept` gets that copy itself; given it, pages are read only when their bytes have changed. The verdicts are the
        same with it and without.
        """
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
            return _compare_content(known, fetched, rules, kept)
        return Verdict(
            _OUTCOMES.get(status, Outcome.MOVED if 300 <= status < 400 else Outcome.FAILED), reason=f"status_{status}"
        )


_OUTCOMES = {404: Outcome.GONE, 410: Outcome.GONE, 429: Outcome.BUSY, 503: Outcome.BUSY}


def compare(known: Validators, fetched: Fetched) -> Verdict:
    """What came of a fetch, without rules of the site's own."""
    return Detector().compare(known, fetched)


def _compare_content(known: Validators, fetched: Fetched, rules: Rules, kept: Kept | None) -> Verdict:
    """The bytes first, because that is cheap; then what they say; then how far that differs."""
    raw = mark(fetched.body)
    if not known.fingerprint and kept is not None:
        unread = Validators(fetched.validators.etag, fetched.validators.last_modified, raw, raw)
        return Verdict(Outcome.NEW, significance=1.0, validators=unread)
    if known.fingerprint and raw == known.raw:
        same = replace(fetched.validators, fingerprint=known.fingerprint, raw=raw, signature=known.signature)
        return Verdict(Outcome.UNCHANGED, validators=same)
    fingerprint, fuzzy = _marks(fetched.body, fetched.content_type, rules, raw)
    now = replace(fetched.validators, fingerprint=fingerprint, raw=raw, signature=fuzzy)
    if not known.fingerprint:
        return Verdict(Outcome.NEW, significance=1.0, validators=now)
    then, then_fuzzy = _marks_of_kept(known, rules, kept)
    if fingerprint == then:
        return Verdict(Outcome.UNCHANGED, validators=now)
    significance = max(LEAST, distance(then_fuzzy, fuzzy)) if then_fuzzy and fuzzy else 1.0
    return Verdict(Outcome.CHANGED, significance=significance, validators=now)


def _marks(body: bytes, content_type: str, rules: Rules, raw: int) -> tuple[int, int]:
    """Mark and signature of what a body says.

    A page whose main text cannot be told apart (a bare redirect page, a frame set) is compared as it is, and so is what
    is no page.
    """
    if "html" in content_type.lower() and (text := main_text(body, rules)):
        return mark(text.encode()), signature(text)
    return raw, 0


def _marks_of_kept(known: Validators, rules: Rules, kept: Kept | None) -> tuple[int, int]:
    """The same of the kept copy, which is read now if it never was."""
    unread = known.fingerprint == known.raw and not known.signature
    copy = kept() if unread and kept is not None else None
    if copy is None or mark(copy.body) != known.raw:
        return known.fingerprint, known.signature
    return _marks(copy.body, copy.content_type, rules, known.raw)
