"""What was found and is not kept yet: known, written down, and waiting until a first crawl is worth a refresh.

While there is room and nothing waits, pages go straight on, as they were found. The others wait on disk by host
(`store.waiting`), and come in by expected value (`frontier.choosing`). Both ways a page is written down before it is
known, so a kill loses none. After it, pages that had just come in or left are looked up where they are kept: each is
there, or waits.
"""

import json
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import ConfigError, StoreError
from afresh.frontier import Admission, choosing, host_of
from afresh.frontier.choosing import LEAST_EACH
from afresh.sources.web.known import LEAST_MEMORY, Known
from afresh.store.faults import translated
from afresh.store.waiting import BANDS, Waiting, band_of
from afresh.types import Page

MAX_ENTERING = 500  # pages in one go: others want a turn
FEW_HOSTS = 100_000  # of so many it is reckoned anew each time which come next
MIN_MEMORY = 2 * LEAST_MEMORY
HOST_BYTES = 512  # of memory for which there may be one host
LEAST_HOSTS = 10_000
MARK = "crawl"  # the file that says whose a folder is
FADING = 0.999  # of what first crawls were worth, with each of them


class Backlog:
    """Keeps what was found in a folder that belongs to one process at a time.

    Invariants: what is known is handed out, or waits, or was refused; after a kill nothing is missing of it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        memory: int,
        max_known: int | None = None,
        name: str = "",
        numbers: Callable[[Sequence[str]], Sequence[int]] = lambda urls: [0] * len(urls),
        remove: Callable[[Sequence[str]], object] = lambda urls: None,
    ) -> None:
        """`name` tells the folder's crawl from others: a folder of another one is begun anew.

        `numbers` are those of the store's pages, 0 where one is not kept; `remove` wishes that it keeps some no more.
        """
        if memory < MIN_MEMORY:
            raise ConfigError(f"{memory:,} bytes are too little memory for a crawl.", hint="Allow at least 8MiB.")
        self.max_known = max_known
        self._most_hosts = max(memory // HOST_BYTES, LEAST_HOSTS)
        self.space = 0  # pages that may go straight on
        self.share = LEAST_EACH  # pages that were never tried, that may be of one host
        self.full_at = 0  # pages that are held, where no more may be
        self._untried_of: dict[str, int] = {}  # pages of each host that are in and were never tried
        self.admits: Callable[[Page], bool] = lambda page: True  # whether a page that waited is still wanted
        with translated(folder):
            folder.mkdir(exist_ok=True, mode=0o700)
            if not self.is_of(folder, name):
                for each in ("known", "waiting"):
                    rmtree(folder / each, ignore_errors=True)
                (folder / MARK).write_text(name)
        self.known = Known(folder / "known", memory=memory * 5 // 8)
        try:
            self.waiting = Waiting(folder / "waiting", memory=memory // 4)
        except BaseException:
            self.known.close()
            raise
        hosts = len(self.waiting.names)
        self._entered, self._untried = array("i", bytes(4 * hosts)), array("i", bytes(4 * hosts))
        self._sums, self._tries = array("f", bytes(4 * hosts)), array("f", bytes(4 * hosts))
        self._sum = self._weight = 0.0  # of all hosts
        self._choice: list[tuple[int, int]] = []
        self._handed: list[Page] = []  # out, and perhaps not yet safe where they went
        self.leaving: set[str] = set()  # pages that wait again, and perhaps are kept until their removal is heard of
        self._numbers, self._remove = numbers, remove
        self.admitted = 0

    @staticmethod
    def is_of(folder: Path, name: str) -> bool:
        """Whether a folder is that of the crawl of this name; another one is begun anew."""
        mark = folder / MARK
        return mark.exists() and mark.read_text() == name

    @staticmethod
    def new_name() -> str:
        """A name for the folder of a new crawl."""
        return token_hex(8)

    def begin(self, admission: Admission) -> int:
        """Go on where the last process ended; how many pages were admitted before."""
        admitted = 0
        if self.waiting.kept:
            admitted = self._recall(self.waiting.kept, admission)
        self.waiting.extra = lambda: self._snapshot(admission)
        self.waiting.handed = lambda: _columns(self._handed)
        for marks, urls in self.waiting.replay(host_of):
            self.known.keep(marks[self.known.look(marks)])
            for url in urls:
                admitted += admission.count(url) is None
        self._grow()
        self.admitted = admitted
        self._settle_after_kill()
        return admitted

    def _settle_after_kill(self) -> None:
        """Pages that were out are kept, or wait again; those that were to leave do so."""
        out, back = self.waiting.out, list(self.waiting.back)
        if not (out or back):
            return
        self.leaving.update(url for url, number in zip(back, self._numbers(back), strict=True) if number)
        self._remove(list(self.leaving))
        urls = list(out)
        lost = [url for url, number in zip(urls, self._numbers(urls), strict=True) if not number]
        self.waiting.queue_again(lost, [host_of(url) for url in lost], [out[url] for url in lost])
        self._grow()
        self.waiting.out, self.waiting.back = {}, set()
        self.waiting.save()

    def __len__(self) -> int:
        return len(self.waiting)

    def full(self, more: int, host: str) -> str:
        """Why nothing of this host may become known, besides so many that are about to; "" if it may."""
        if self.max_known is not None and len(self.known) + more >= self.max_known:
            return "max_known"
        known = len(self.waiting.names) < self._most_hosts or self.waiting.number(host) >= 0
        return "" if known else "memory"

    def take_in(self, pages: Sequence[Page], marks: NDArray[np.uint64]) -> list[Page]:
        """Write pages down that were just found; those that go straight on."""
        on = self._go_straight(pages)
        straight = [page for page, goes in zip(pages, on, strict=True) if goes]
        others = [page for page, goes in zip(pages, on, strict=True) if not goes]
        self.waiting.note(marks[on], *_columns(straight))
        for page in straight:
            if (number := self.waiting.number(page.host)) >= 0:
                self._entered[number] += 1
        if others:
            urls, depths = _columns(others)
            self.waiting.put(marks[~on], urls, [page.host for page in others], depths)
            self._grow()
        self.space -= len(straight)
        self.admitted += len(pages)
        self._handed += straight
        return straight

    def _go_straight(self, pages: Sequence[Page]) -> NDArray[np.bool_]:
        """Which of these need not wait."""
        on = np.zeros(len(pages), np.bool_)
        if len(self.waiting):
            return on  # while others wait, it is their value that decides, and not who was found last
        left, share = self.space, max(self.share, LEAST_EACH)
        new: dict[str, int] = {}
        for nth, page in enumerate(pages):
            if left <= 0:
                break
            count = new.get(page.host, 0)
            if self._untried_of.get(page.host, 0) + count < share:
                on[nth], new[page.host] = True, count + 1
                left -= 1
        return on

    def count_untried(self, host: str, more: int) -> None:
        """So many more pages of a host are in and were never tried, whoever brought them in, or fewer."""
        count = max(self._untried_of.get(host, 0) + more, 0)
        if count:
            self._untried_of[host] = count
        else:
            self._untried_of.pop(host, None)
        number = self.waiting.number(host)
        if 0 <= number < len(self._untried):
            self._untried[number] = count

    @property
    def handed(self) -> int:
        """How many pages are out, and would come again after a kill."""
        return len(self._handed)

    def settle(self, count: int) -> None:
        """The first so many of them are safe where they went."""
        del self._handed[:count]

    def enter(self, now: float, price: float) -> list[Page]:
        """Pages that go in now: of the hosts where they are expected to be worth most, and at least the price."""
        room = min(self.space, MAX_ENTERING)
        if room <= 0 or not len(self.waiting) or self.waiting.stepping:
            return []
        if not self._choice or len(self.waiting.names) < FEW_HOSTS:
            self._choice = self._chosen(price)
        pages: list[Page] = []
        while self._choice and len(pages) < room:
            number, count = self._choice.pop()
            taken = self.waiting.take(number, min(count, room - len(pages)))
            if len(taken) < count and taken:
                self._choice.append((number, count - len(taken)))
            host = self.waiting.names[number]
            found = [Page(url, host, added=now, depth=depth) for url, depth in taken]
            wanted = [page for page in found if self.admits(page)]
            self._entered[number] += len(wanted)
            pages += wanted
        self.space -= len(pages)
        self._handed += pages
        return pages

    def best(self, most: int) -> list[float]:
        """The expected values of what would come in next, as far as the share of its host lets it, the best first."""
        values, waiting, untried = self._values()
        may = choosing.places_of_each(values, waiting, untried, self.share, 0.0)
        hosts = np.argsort(-np.where(may > 0, values, -1.0), kind="stable")[:most]
        found = np.repeat(values[hosts], np.where(values[hosts] > 0.0, may[hosts], 0))
        return [float(value) for value in found[:most]]

    def value(self, page: Page) -> float:
        """What a page that is in would be expected to be worth if it waited."""
        number = self.waiting.number(page.host)
        known = number >= 0
        sums, tries, entered = (
            np.array([column[number] if known else 0.0], np.float64)
            for column in (self._sums, self._tries, self._entered)
        )
        counts = np.zeros((1, BANDS), np.int32)
        counts[0, band_of(page.url, page.depth)] = 1
        worths = choosing.worth(sums, tries, self.average)
        return float(choosing.expected(counts, worths, np.maximum(entered - 1.0, 0.0))[0])

    def put_back(self, pages: Sequence[Page]) -> None:
        """Pages that were in wait again, behind the others of their hosts."""
        urls, depths = _columns(pages)
        self.leaving.update(urls)
        self.waiting.put(np.zeros(len(pages), np.uint64), urls, [page.host for page in pages], depths)
        self._grow()
        for page in pages:
            number = self.waiting.number(page.host)
            self._entered[number] = max(self._entered[number] - 1, 0)

    def _values(self) -> tuple[choosing.Floats, choosing.Integers, choosing.Integers]:
        """The value of what is next of each host, how many wait, and how many are in and were never tried."""
        counts = self.waiting.counts
        sums, tries = (np.array(each, np.float64) for each in (self._sums, self._tries))
        worths = choosing.worth(sums, tries, self.average)
        values = choosing.expected(counts, worths, np.array(self._entered, np.float64))
        return values, counts.sum(axis=1).astype(np.int64), np.array(self._untried, np.int64)

    def _chosen(self, price: float) -> list[tuple[int, int]]:
        values, waiting, untried = self._values()
        if not self._weight:
            price = 0.0  # nobody knows yet what a first crawl is worth
        chosen = choosing.choose(values, waiting, untried, self.space, self.share, price)
        # The most valuable at the end, which is taken first; of each as much as fits into one go beside others.
        return [(host, count) for host, count in reversed(chosen)]

    @property
    def average(self) -> float:
        """What a first crawl is worth, over all hosts."""
        return self._sum / self._weight if self._weight else 0.0

    def tried(self, page: Page, value: float, *, copied: bool) -> None:
        """A page was crawled for the first time: its worth when it was ordered, and whether that gave a copy."""
        worth = value if copied else 0.0
        self._sum, self._weight = self._sum * FADING + worth, self._weight * FADING + 1.0
        number = self.waiting.number(page.host)
        if number >= 0:
            self._sums[number] += worth
            self._tries[number] += 1.0

    def counts(self) -> dict[str, float]:
        """How it stands."""
        full = self.max_known is not None and len(self.known) >= self.max_known
        return {
            "full_at": self.full_at,
            "known_at_most": self.max_known if full and self.max_known is not None else 0,
            "known": len(self.known),
            "known_on_disk": self.known.on_disk,
            "waiting": len(self.waiting),
            "hosts": len(self.waiting.names),
            "bytes": self.known.nbytes + self.waiting.nbytes,
        }

    def close(self) -> None:
        """Save everything; a second call does nothing."""
        try:
            self.waiting.close()
        finally:
            self.known.close()

    def _grow(self) -> None:
        before = len(self._entered)
        more = len(self.waiting.names) - before
        if more > 0:
            for column in (self._entered, self._untried, self._sums, self._tries):
                column.frombytes(bytes(4 * more))
            for number in range(before, before + more):
                self._untried[number] = self._untried_of.get(self.waiting.names[number], 0)

    def _snapshot(self, admission: Admission) -> Callable[[], bytes]:
        self.known.flush()
        self._grow()
        columns = [self._entered.tobytes(), self._sums.tobytes(), self._tries.tobytes()]
        head = {"admitted": self.admitted, "sum": self._sum, "weight": self._weight, "sizes": [*map(len, columns)]}
        head["known"] = len(self.known)
        counts = admission.snapshot()
        return lambda: b"\n".join([json.dumps(head).encode(), b"".join(columns) + counts()])

    def _recall(self, kept: bytes, admission: Admission) -> int:
        try:
            head, _, rest = kept.partition(b"\n")
            said, at = json.loads(head), 0
            sizes = said["sizes"]
            for column, size in ((self._entered, sizes[0]), (self._sums, sizes[1]), (self._tries, sizes[2])):
                _fill(column, rest[at : at + size])
                at += size
            self._sum, self._weight = float(said["sum"]), float(said["weight"])
            admission.recall(rest[at:])
            admitted, known = int(said["admitted"]), int(said.get("known", 0))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"What is kept in {self.waiting.folder} makes no sense: {error}.",
                hint="Remove the folder: pages are read for links again.",
            ) from None
        if len(self.known) < known:  # all of these were safe by then: what is left of a file looks like a whole one
            raise StoreError(
                f"Of {known:,} known URLs in {self.known.folder}, {known - len(self.known):,} are missing.",
                hint="Put a backup of the folder in its place, or remove all of it: pages are read for links again.",
            )
        return admitted


def _columns(pages: Sequence[Page]) -> tuple[list[str], list[int]]:
    return [page.url for page in pages], [page.depth for page in pages]


def _fill(column: "array[Any]", saved: bytes) -> None:
    del column[:]
    column.frombytes(saved)
