"""Which page has which slot: URLs as 64-bit fingerprints, their text elsewhere.

A page that a store keeps has a number there, and its text is read when an order goes out. Pages that no store has (yet)
are kept here as they are: those that were just found, and all pages of an engine that is used without a store.

Two URLs with one fingerprint are taken for one page. The first that comes stays; the second is left out and counted
(`alike`), and what is heard of it counts for the first. Among n pages some pair is alike by chance with probability
n²/2⁶⁵: 3 in a million at 10⁷. Nobody can bring it about on purpose without the secret.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from afresh.errors import StoreError
from afresh.frontier.seen import fingerprinter, fingerprints
from afresh.types import Page

Integers = NDArray[np.int64]
Marks = NDArray[np.uint64]

FULL = 2 / 3  # of the places of the table
FIRST_PLACES = 64


class Names:
    """The slots of pages by their URLs, and their text by slot.

    Invariant: a slot that is in use has a fingerprint, and either a number in the store or a page of its own here.
    """

    def __init__(self, secret: bytes = b"", read: Callable[[int], Page | None] | None = None) -> None:
        """`read` gives the page that has a number in the store."""
        from afresh.engine import slot_table  # compiled code takes a while to load

        self._does = slot_table
        self._secret, self.read = secret, read
        self._mark = fingerprinter(secret)
        self._table = np.full(FIRST_PLACES, -1, np.int32)
        self._marks = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.uint32)
        self.used = np.zeros(0, np.bool_)  # which slots are in use
        self._own: dict[int, Page] = {}
        self._asked: tuple[str, int] = ("", -1)  # the page that was asked for last, while all stay where they are
        self._count = 0
        self.alike = 0  # pages that were left out because of that

    def __len__(self) -> int:
        return self._count

    @property
    def seed(self) -> int:
        """A number that only who knows the secret can tell."""
        return int(fingerprints(("",), self._secret)[0]) if self._secret else 0

    def marks(self, urls: Sequence[str]) -> Marks:
        """The fingerprints of URLs."""
        return fingerprints(urls, self._secret)

    def slot(self, url: str) -> int:
        """The slot of a page; −1 if it has none."""
        asked, slot = self._asked
        if url is asked:  # a crawl asks some eight times for the same one
            return slot
        slot = int(self._does.find(self._table, self._marks, self._mark(url)))
        self._asked = url, slot
        return slot

    def slots(self, marks: Marks) -> Integers:
        """The slots of fingerprints; −1 where there is none."""
        found = np.empty(len(marks), np.int64)
        self._does.find_all(self._table, self._marks, marks, found)
        return found

    def enter(self, slot: int, page: Page, number: int = 0) -> None:
        """A page has this slot from now on; `number` is that of the store, if it keeps it."""
        self.enter_many(np.array([slot]), self.marks((page.url,)), np.array([number]))
        if not number:
            self._own[slot] = page

    def enter_many(self, slots: Integers, marks: Marks, numbers: Integers) -> None:
        """Pages that are not here yet have these slots; those without a number are named by `own`."""
        self._asked = "", -1
        self._make_room(int(slots.max(initial=-1)), len(slots))
        self._marks[slots], self._numbers[slots], self.used[slots] = marks, numbers, True
        self._does.put_all(self._table, self._marks, slots)
        self._count += len(slots)

    def own(self, slot: int, page: Page) -> None:
        """Keep the text of a page here, or what its operator says of it now."""
        if not self._numbers[slot]:
            self._own[slot] = page

    def stored(self, slot: int, url: str, number: int) -> None:
        """A store keeps this page under a number; if it is another one than the slot's, it is alike and left out."""
        if self._numbers[slot] == number:
            return
        page = self._own.get(slot)
        if page is not None and page.url == url:
            del self._own[slot]
            self._numbers[slot] = number
        else:
            self.alike += 1

    def page(self, slot: int) -> Page:
        """The page at a slot."""
        number = int(self._numbers[slot])
        if not number:
            return self._own[slot]
        page = None if self.read is None else self.read(number)
        if page is None:
            raise StoreError(f"The page with number {number} is not in the store any more.", hint="Was it replaced?")
        return page

    def leave(self, slot: int) -> None:
        """A slot is free."""
        self._asked = "", -1
        self._does.take_out(self._table, self._marks, slot)
        self.used[slot] = False
        self._own.pop(slot, None)
        self._numbers[slot] = 0
        self._count -= 1

    def are_used(self, slots: Integers) -> NDArray[np.bool_]:
        """Which of these slots are in use."""
        return self.used[slots]

    def in_use(self) -> Integers:
        """All slots that are."""
        return np.flatnonzero(self.used)

    def pages(self) -> Iterator[Page]:
        """All pages; they may come and go meanwhile."""
        for slot in self.in_use().tolist():
            if self.used[slot]:
                yield self.page(slot)

    @property
    def nbytes(self) -> int:
        """Memory that they take up, without the text of pages that no store has."""
        return sum(each.nbytes for each in (self._table, self._marks, self._numbers, self.used))

    def reserve(self, pages: int) -> None:
        """Make room for this many pages at once, and not for a quarter more."""
        self._grow(pages)
        self._make_room(pages - 1, pages - self._count)

    def _grow(self, size: int) -> None:
        have = len(self._marks)
        if size > have:
            for name in ("_marks", "_numbers", "used"):
                before = getattr(self, name)
                after = np.zeros(size, before.dtype)
                after[:have] = before
                setattr(self, name, after)

    def _make_room(self, slot: int, more: int) -> None:
        have = len(self._marks)
        if slot >= have:
            self._grow(max(64, slot + 1, have * 5 // 4))
        places = self._table.size
        while self._count + more > FULL * places:
            places *= 2
        if places > self._table.size:
            larger = np.full(places, -1, np.int32)
            self._does.move_all(self._table, self._marks, larger)
            self._table = larger
