"""From what was fetched and what is kept to a verdict, in two steps.

`Detector.look` reads bytes: it may take a while, touches nothing shared, and belongs in a thread. `judge` makes a
verdict of what was found there and of what is known to be noise: it touches no bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from afresh.detect.difference import Difference, difference
from afresh.detect.fingerprint import mark
from afresh.detect.noise import Habits, ignored
from afresh.reading import Document, Wanted, compile_selectors, read, read_both
from afresh.reading.page import NOTHING
from afresh.reading.select import Parts
from afresh.types import STORE_FULL, Answer, Copy, Fetched, Outcome, Validators, Verdict

Kept = Callable[[], Copy | None]

REFUSALS = frozenset({"refused_address", "refused_port", "robots", "scope", "names_of_address", STORE_FULL})
_OUTCOMES = {
    Answer.GONE: Outcome.GONE,
    Answer.MOVED: Outcome.MOVED,
    Answer.BUSY: Outcome.BUSY,
    Answer.REFUSED: Outcome.REFUSED,
    Answer.FAILED: Outcome.FAILED,
}

# Why a page counts as unchanged, or how it was compared; these words stand in the history.
NOT_MODIFIED = "not_modified"  # the source said so
SAME_BYTES = "same_bytes"
SAME_TEXT = "same_text"  # only markup differs
NOISE = "noise"  # only markup and noise differ
TOO_COMPLEX = "too_complex"  # beyond the limits of reading: compared by its bytes


@dataclass(frozen=True, slots=True)
class Rules:
    """A site's own rules: CSS selectors of what counts (empty: all) and of what does not; or the bytes themselves."""

    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    compare: str = "text"  # or "bytes"
    parts: Parts = field(init=False, repr=False, compare=False)
    without_keep: Parts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A selector that cannot be read would silently empty every page of the site.
        object.__setattr__(self, "parts", compile_selectors(self.keep, self.drop))
        object.__setattr__(self, "without_keep", compile_selectors((), self.drop))

    def keeps_nothing_of(self, body: bytes, content_type: str) -> bool:
        """Whether what is to be kept is nowhere on a page, which is then compared as if nothing had been said.

        >>> Rules(keep=("main",)).keeps_nothing_of(b"<p>Hello", "text/html")
        True
        """
        if not self.keep or self.compare == "bytes" or not _is_html(content_type):
            return False
        page = read(body, content_type, selectors=self.parts)
        return page.whole and not len(page)


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Look:
    """What a fetch brought, beside what is kept: a verdict, or a difference from which noise is still to be taken."""

    verdict: Verdict
    difference: Difference | None = None
    page: Document | None = None  # what was fetched, if it was read


class Detector:
    """Says what came of a fetch, site by site: `rules` maps a host to what counts there."""

    def __init__(self, rules: Mapping[str, Rules] | None = None) -> None:
        self.rules = dict(rules or {})

    def rules_of(self, host: str) -> Rules:
        """What counts on a host."""
        return self.rules.get(host) or self.rules.get(host.partition(":")[0]) or NO_RULES

    def look(
        self,
        known: Validators,
        fetched: Fetched,
        host: str = "",
        *,
        kept: Kept | None = None,
        wanted: Wanted | None = None,
        watched: Iterable[int] = (),
    ) -> Look:
        """What came of a fetch, given the validators of the kept copy and what gets that copy itself.

        A page is read if its bytes differ from those of the copy, or if something is `wanted` of it besides. `watched`
        are the keys of spots whose presence is of interest.
        """
        answer = fetched.answered
        if answer in _OUTCOMES:
            outcome = Outcome.REFUSED if fetched.reason in REFUSALS else _OUTCOMES[answer]
            return Look(Verdict(outcome, reason=fetched.reason or f"status_{fetched.status}"))
        if answer is Answer.SAME:
            if known.fingerprint:
                return Look(Verdict(Outcome.UNCHANGED, validators=known, reason=NOT_MODIFIED))
            return Look(Verdict(Outcome.FAILED, reason="not_modified_without_copy"))
        rules = self.rules_of(host)
        validators = replace(fetched.validators, fingerprint=mark(fetched.body))
        if validators.fingerprint == known.fingerprint:
            return Look(Verdict(Outcome.UNCHANGED, validators=validators, reason=SAME_BYTES))
        if not known.fingerprint:
            page = _read(fetched, rules, wanted) if wanted is not None else None
            return Look(Verdict(Outcome.NEW, 1.0, validators), page=page)
        copy = kept() if kept is not None else None
        changed = Verdict(Outcome.CHANGED, 1.0, validators)
        if copy is not None and copy.body == fetched.body:  # a copy of before fingerprints were of the bytes
            return Look(Verdict(Outcome.UNCHANGED, validators=validators, reason=SAME_BYTES))
        if copy is None or rules.compare == "bytes" or not _is_html(copy.content_type, fetched.content_type):
            return Look(changed, page=_read(fetched, rules, wanted) if wanted is not None else None)
        return _beside(copy, fetched, changed, rules, wanted or NOTHING, watched)


def _read(fetched: Fetched, rules: Rules, wanted: Wanted) -> Document | None:
    """What was fetched, if it is a page."""
    if not _is_html(fetched.content_type):
        return None
    return read(fetched.body, fetched.content_type, wanted=wanted, selectors=rules.parts)


def _beside(
    copy: Copy, fetched: Fetched, changed: Verdict, rules: Rules, wanted: Wanted, watched: Iterable[int]
) -> Look:
    """What was fetched beside the copy; `changed` is the verdict if nothing speaks against it."""
    old, new = (copy.body, copy.content_type), (fetched.body, fetched.content_type)
    before, page = read_both(old, new, wanted=wanted, selectors=rules.parts)
    if rules.keep and page.whole and before.whole and not len(page) and not len(before):
        # What is to be kept is nowhere, on a page of another layout or after a new design: all of it counts.
        before, page = read_both(old, new, wanted=wanted, selectors=rules.without_keep)
    if not page.whole or not before.whole:
        return Look(replace(changed, reason=TOO_COMPLEX), page=page)
    if not len(page) and not len(before):  # neither shows any text: a frame set, or a page made by a script
        return Look(changed, page=page)
    found = difference(before, page, watched)
    if len(found.old) or len(found.new):
        return Look(replace(changed, significance=found.significance()), found, page)
    return Look(Verdict(Outcome.UNCHANGED, validators=changed.validators, reason=SAME_TEXT), found, page)


def judge(look: Look, *noise: Iterable[int]) -> Verdict:
    """The verdict, once noise is left out."""
    verdict, found = look.verdict, look.difference
    if verdict.outcome is not Outcome.CHANGED or found is None:
        return verdict
    passing = ignored(found, *noise)
    if passing and found.spots is not None and len(passing) == len(found.spots):
        return Verdict(Outcome.UNCHANGED, validators=verdict.validators, reason=NOISE)
    return replace(verdict, significance=found.significance(passing)) if passing else verdict


def compare(known: Validators, fetched: Fetched) -> Verdict:
    """What came of a fetch by its bytes alone, for what is no page."""
    return Detector().look(known, fetched).verdict


def learn(
    look: Look, now: float, *, elapsed: float | None, page_habits: Habits, host_habits: Habits, page: int = 0
) -> None:
    """Take what was found into what is known of the page's and the host's noise."""
    found = look.difference
    if found is not None:
        page_habits.learn(found, now, elapsed)
    elif look.verdict.reason in (NOT_MODIFIED, SAME_BYTES):
        page_habits.rested(now)
    else:
        return
    host_habits.learn_from(page_habits, found, now, page)


def compile_ahead(wanted: Wanted) -> None:
    """Compile all that reads and compares pages, by doing it once."""
    old, new = b"<p>It is 12:00<p>The ferry runs.", b"<p>It is 13:00<p>The ferry runs.<p>Or not."
    known = Validators(fingerprint=mark(old))
    copy = Copy("", old, "text/html", 0.0, 0.0, known)
    fetched = Fetched("", 0.0, 0.0, 200, new, "text/html")
    Detector().look(known, fetched, kept=lambda: copy, wanted=wanted, watched=[1])


def _is_html(*content_types: str) -> bool:
    return all("html" in each.lower() for each in content_types)
