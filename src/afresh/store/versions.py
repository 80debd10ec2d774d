"""Which versions of a page belong to a change, or to a moment."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from afresh.store.base import Store, Version
from afresh.types import Copy


def around(store: Store, url: str, number: int, *, most: int = 0) -> tuple[Copy | None, Copy | None]:
    """What a page was before the change of this number, and what it was then; None: that is not kept, or never was.

    What was gone and is back as it was has the version that it had, and none before. It may read and unpack two bodies,
    of at most so many bytes each; 0: of any size.
    """
    found = [each for each in store.versions(url) if not most or each.size <= most]
    before = next((each for each in found if each.replaced_by == number), None)
    after = next((each for each in found if each.number == number), None)
    if before is None and after is None:
        after = covering(found, number)
    old, new = (None if each is None else store.version(url, each.number) for each in (before, after))
    return old, new


def copy_before(store: Store, url: str, number: int, *, most: int = 0) -> Copy | None:
    """What the copy was when the crawl of this number found no content: the page may have come back meanwhile."""
    found = covering(store.versions(url), number)
    if found is None or (most and found.size > most):
        return None
    return store.version(url, found.number)


def covering(versions: Iterable[Version], number: int) -> Version | None:
    """The version that was the copy when the crawl of this number was written; None if nobody can tell.

    >>> kept = [Version(7, 50.0, "text/html", 9), Version(3, 10.0, "text/html", 9, 7, 50.0)]
    >>> [each and each.number for each in (covering(kept, number) for number in (8, 6, 2))]
    [7, 3, None]
    """
    return next(
        (
            each
            for each in versions
            if 0 < each.number <= number and (not each.replaced_by or each.replaced_by > number)
        ),
        None,
    )


def at(versions: Iterable[Version], moment: float) -> Version | None:
    """The version that was the copy at a moment; None if there was none, or it is not kept.

    >>> kept = [Version(7, 50.0, "text/html", 9), Version(3, 10.0, "text/html", 9, 7, 50.0)]
    >>> [each and each.number for each in (at(kept, moment) for moment in (60.0, 20.0, 5.0))]
    [7, 3, None]
    """
    kept = (each for each in versions if each.replaced is None or each.replaced > moment)
    return next((each for each in kept if each.since <= moment), None)


def dated(found: Sequence[Version]) -> list[Version]:
    """Versions, the newest first, with the moment at which each appeared: when it replaced what was before.

    Where that one is not kept, it is what the history told, or at least when its bytes were got.
    """
    replaced = {each.replaced_by: each.replaced for each in found if each.replaced_by}
    return [replace(each, appeared=_known(replaced.get(each.number), each.appeared, each.fetched)) for each in found]


def _known(*moments: float | None) -> float:
    return next(each for each in moments if each is not None)
