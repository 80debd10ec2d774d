"""What was found and is not kept yet: known, written down, and waiting until a first crawl is worth a refresh.

While there is room and nothing waits, pages go straight on, as they were found. The others wait on disk by host
(`store.waiting`), and come in by expected value (`frontier.choosing`). Both ways a page is written down before it is
known, so a kill loses none. After it, pages that had just come in or left are looked up where they are kept: each is
there, or waits.
"""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from afresh.errors import ConfigError, StoreError
from afresh.frontier import Admission, choosing, host_of, site_of
from afresh.frontier.choosing import LEAST_EACH
from afresh.sources.web.known import LEAST_MEMORY, Known
from afresh.store.faults import translated
from afresh.store.waiting import Waiting, band_of
from afresh.types import Page

MAX_ENTERING = 500  # pages in one go: others want a turn
FEW_HOSTS = 30_000  # of so many it is reckoned anew each time which come next,
AHEAD = 100  # of more for a page per so many of them, as that takes a microsecond each
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
        self.most_held: int | None = None  # pages, whether they are that many or not
        self._untried_of: dict[str, int] = {}  # pages of each host that are in and were never tried,
        self._untried_on: Counter[str] = Counter()  # and of each site
        self.is_named: Callable[[str], bool] = lambda host: False  # whether the scope names the site of a host
        self.admits: Callable[[Page], bool] = lambda page: True  # whether a page that waited is still wanted
        with translated(folder):
            folder.mkdir(exist_ok=True, mode=0o700)
            if not self.is_of(folder, name):
                for each in ("known", "waiting", MARK):
                    rmtree(folder / each, ignore_errors=True)
                (folder / MARK).write_text(name)
        self.known = Known(folder / "known", memory=memory * 5 // 8)
        try:
            self.waiting = Waiting(folder / "waiting", memory=memory // 4)
            if len(self.known) and not self.waiting.was_there:
                self.waiting.close()
                raise StoreError(
                    f"The waiting URLs in {self.waiting.folder} are missing.",
                    hint=f"Put a backup of {folder} in its place, or remove all of it: pages are read for links again.",
                )
        except BaseException:
            self.known.close()
            raise
        hosts = len(self.waiting.names)
        self._entered, self._untried = array("i", bytes(4 * hosts)), array("i", bytes(4 * hosts))
        self._sums, self._tries = array("f", bytes(4 * hosts)), array("f", bytes(4 * hosts))
        self._sites = array("q")  # the number of each host's site
        self._site_marks, self._site_numbers = array("Q"), dict[int, int]()  # by host and by mark of a site
        self._known_on = array("q")  # by site: addresses that became known, roughly
        self._sum = self._weight = 0.0  # of all hosts
        self._entered_on: choosing.Floats = np.zeros(0)  # by site, when it was last reckoned
        self._choice: list[tuple[int, int]] = []
        self._handed: list[Page] = []  # out, and perhaps not yet safe where they went
        self.leaving: set[str] = set()  # pages that wait again, and perhaps are kept until their removal is heard of
        self._numbers, self._remove = numbers, remove
        self.admitted = 0

    @staticmethod
    def is_of(folder: Path, name: str) -> bool:
        """Whether a folder is that of the crawl of this name; another one is begun anew."""
        try:
            return (folder / MARK).read_bytes() == name.encode()
        except OSError:
            return False

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
        if self._sites:
            sums = np.bincount(
                self._sites, self.waiting.counts.sum(axis=1) + np.array(self._entered), len(self._known_on)
            )
            self._known_on = array("q", sums.astype(np.int64))
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
        if not known:
            return "memory"
        return "site" if self._site_is_full(host, more) else ""

    def _site_is_full(self, host: str, more: int) -> bool:
        """Whether a site has as many of the known addresses as are left for all: so it never takes the last of them."""
        if self.max_known is None or len(self._site_numbers) < 2:
            return False
        left = self.max_known - len(self.known) - more
        if left >= self.max_known // 2 or self.is_named(host):
            return False
        site = self._site_numbers.get(self._mark_of_site(host))
        return site is not None and self._known_on[site] >= left

    def take_in(self, pages: Sequence[Page], marks: NDArray[np.uint64]) -> list[Page]:
        """Write pages down that were just found; those that go straight on."""
        on = self._go_straight(pages)
        straight = [page for page, goes in zip(pages, on, strict=True) if goes]
        others = [page for page, goes in zip(pages, on, strict=True) if not goes]
        self.waiting.note(marks[on], *_columns(straight))
        for page in straight:
            if (number := self._number(page.host)) >= 0:
                self._entered[number] += 1
        if others:
            urls, depths = _columns(others)
            self.waiting.put(marks[~on], urls, [page.host for page in others], depths)
            self._grow()
        if self.max_known is not None:
            for host, count in Counter(page.host for page in pages).items():
                self._known_on[self._site_number(self._mark_of_site(host))] += count
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
        new, of_sites = Counter[str](), Counter[str]()
        for nth, page in enumerate(pages):
            if left <= 0:
                break
            host, site = page.host, site_of(page.host)
            if self._untried_of.get(host, 0) + new[host] < share > self._untried_on[site] + of_sites[site]:
                on[nth] = True
                new[host] += 1
                of_sites[site] += 1
                left -= 1
        return on

    def count_untried(self, host: str, more: int) -> None:
        """So many more pages of a host are in and were never tried, whoever brought them in, or fewer."""
        before = self._untried_of.get(host, 0)
        count = max(before + more, 0)
        site = site_of(host)
        self._untried_on[site] += count - before
        if not self._untried_on[site]:
            del self._untried_on[site]
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
        values, waiting, untried, sites = self._values()
        may = choosing.places_of_each(values, waiting, untried, sites, self.share, 0.0)
        hosts = np.argsort(-np.where(may > 0, values, -1.0), kind="stable")[:most]
        found = np.repeat(values[hosts], np.where(values[hosts] > 0.0, may[hosts], 0))
        return [float(value) for value in found[:most]]

    def value(self, page: Page) -> float:
        """What a page that is in would be expected to be worth if it waited."""
        number = self._number(page.host)
        known = number >= 0
        sums, tries, entered = (
            np.array([column[number] if known else 0.0], np.float64)
            for column in (self._sums, self._tries, self._entered)
        )
        of_site = (
            self._entered_on[self._sites[number]] if known and self._sites[number] < len(self._entered_on) else 0.0
        )
        others = np.maximum(of_site - entered, 0.0)
        entered = np.maximum(entered - 1.0, 0.0)
        worths = choosing.worth(sums, tries, self.average) * choosing.DEPTH_WORTH[band_of(page.url, page.depth)]
        return float((worths / choosing.crowded(entered, entered + others))[0])

    def put_back(self, pages: Sequence[Page]) -> None:
        """Pages that were in wait again, behind the others of their hosts."""
        urls, depths = _columns(pages)
        self.leaving.update(urls)
        self.waiting.put(np.zeros(len(pages), np.uint64), urls, [page.host for page in pages], depths)
        self._grow()
        for page in pages:
            number = self._number(page.host)
            if number < 0:
                continue  # its host comes with the end of a step
            self._entered[number] = max(self._entered[number] - 1, 0)

    def _values(self) -> tuple[choosing.Floats, choosing.Integers, choosing.Integers, choosing.Integers]:
        """The value of what is next of each host, how many wait, how many are in and were never tried, and its site."""
        self._grow()  # hosts that came in during a step
        counts, sites, entered = self.waiting.counts, np.array(self._sites), np.array(self._entered, np.float64)
        sums, tries = (np.array(each, np.float64) for each in (self._sums, self._tries))
        worths = choosing.worth(sums, tries, self.average)
        values = choosing.expected(counts, worths, entered, sites)
        waiting = counts.sum(axis=1).astype(np.int64)
        self._entered_on = np.bincount(sites, entered).astype(np.float64)
        if self.most_held is not None:
            full = choosing.full_sites(entered, waiting, sites, self.most_held)
            values[full], waiting[full] = -1.0, 0
        return values, waiting, np.array(self._untried, np.int64), sites

    def _chosen(self, price: float) -> list[tuple[int, int]]:
        values, waiting, untried, sites = self._values()
        if not self._weight:
            price = 0.0  # nobody knows yet what a first crawl is worth
        many = len(values) // AHEAD if len(values) >= FEW_HOSTS else 0
        chosen = choosing.choose(values, waiting, untried, sites, max(self.space, many), self.share, price)
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
        number = self._number(page.host)
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

    def _number(self, host: str) -> int:
        """The number of a host; −1 if nothing of it has waited."""
        number = self.waiting.number(host)
        if number >= len(self._entered):  # it came in during a step
            self._grow()
        return number

    def _grow(self) -> None:
        """Have room for all hosts that wait."""
        before = len(self._entered)
        more = len(self.waiting.names) - before
        if more > 0:
            for column in (self._entered, self._untried, self._sums, self._tries):
                column.frombytes(bytes(4 * more))
            for number in range(before, before + more):
                self._untried[number] = self._untried_of.get(self.waiting.names[number], 0)
        for number in range(len(self._site_marks), len(self.waiting.names)):
            mark = self._mark_of_site(self.waiting.names[number])
            self._site_marks.append(mark)
            self._sites.append(self._site_number(mark))

    def _mark_of_site(self, host: str) -> int:
        """Keyed: who names a domain must not be able to make its hosts count for another one."""
        return xxhash.xxh3_64_intdigest(site_of(host).encode(), int.from_bytes(self.known.secret[:8]))

    def _site_number(self, mark: int) -> int:
        number = self._site_numbers.get(mark)
        if number is None:
            number = self._site_numbers[mark] = len(self._site_numbers)
            self._known_on.append(0)
        return number

    def _snapshot(self, admission: Admission) -> Callable[[], bytes]:
        self.known.flush()
        self._grow()
        columns = [each.tobytes() for each in (self._entered, self._sums, self._tries, self._site_marks)]
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
            if len(sizes) > 3:  # earlier versions reckon them anew
                marks = array("Q")
                _fill(marks, rest[at : at + sizes[3]])
                at += sizes[3]
                self._site_marks, self._sites = marks, array("q", map(self._site_number, marks))
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
