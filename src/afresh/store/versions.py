"""Which versions of a page belong to a change, or to a moment."""

from collections.abc import Iterable

from afresh.store.base import Store, Version
from afresh.types import Copy


def around(store: Store, url: str, number: int, *, most: int = 0) -> tuple[Copy | None, Copy | None]:
    """What a page was before the change of this number, and what it was then; None: that is not kept, or never was.

    It may read and unpack two bodies, of at most so many bytes each; 0: of any size.
    """
    found = [each for each in store.versions(url) if not most or each.size <= most]
    before = next((each for each in found if each.replaced_by == number), None)
    after = next((each for each in found if each.number == number), None)
    old, new = (None if each is None else store.version(url, each.number) for each in (before, after))
    return old, new


def at(versions: Iterable[Version], moment: float) -> Version | None:
    """The version that was the copy at a moment; None if there was none, or it is not kept.

    >>> kept = [Version(7, 50.0, "text/html", 9), Version(3, 10.0, "text/html", 9, 7, 50.0)]
    >>> [each and each.number for each in (at(kept, moment) for moment in (60.0, 20.0, 5.0))]
    [7, 3, None]
    """
    return next((each for each in versions if each.fetched <= moment), None)
