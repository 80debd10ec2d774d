"""Pages without a copy wait for their share, so that first crawls starve neither refreshes nor each other.

A first crawl gains more than any refresh, and every host has a turn of its own. So a thousand new host names could take
every turn for as long as they last, be they of one domain or each a domain of its own. Therefore first crawls wait here
while several sites (registrable domains) are kept, and copies that may need a refresh. They go in

- for at most half of the orders, every site in turn. The hosts of a site but its first have a share of their own in
  that, which is the same for every site;
- without that limit where the copy that the engine would refresh instead is younger than a round over all pages takes;
- when there is nothing else to do: no part of the budget is lost to fairness.

Nor does a host need all of its pages with the engine before their first crawls: it is asked one thing at a time. Beyond
`MAX_UNTRIED` they queue here, which costs next to nothing, and one goes in for each that was tried. A page that offers
thousands of links would take the event loop's time from the others otherwise.
"""

from collections import OrderedDict, deque
from dataclasses import replace

from afresh.frontier import host_of, site_of
from afresh.store import PageState
from afresh.types import Page

MIN_SHARE = 1 / 16  # of the orders, for the first crawls of one site's other hosts; more if there are fewer sites
MAX_SHARE = 1 / 2  # for those of all sites together: the other half is for refreshes, if any are due
EARLY_SHARE = 0.8  # of the time that a round over all pages takes: copies that are younger are not due
MAX_CREDIT = 4.0  # orders that may be owed to those who wait
MAX_LET_IN = 8  # pages for one refresh that was not
MAX_UNTRIED = 64  # pages of one host with the engine that were never tried


_Lists = OrderedDict[str, OrderedDict[str, deque[PageState]]]


class Newcomers:
    """Pages that wait for a first crawl, and which goes next: every site has the same share.

    Invariant: a page is either with the engine or here, never both.
    """

    def __init__(self) -> None:
        self._sites: dict[str, str] = {}  # by host
        self._firsts: dict[str, str] = {}  # the first host of each site
        self._begun: set[str] = set()  # other hosts that have gone in: their robots.txt need not be fetched first
        # By site and by host, the next ones first: pages of the first host of each site, and of its others.
        self._fronts: _Lists = OrderedDict()
        self._waiting: _Lists = OrderedDict()
        self._untried: dict[str, int] = {}  # pages of each host that went in and were not tried yet
        self._entered = 0  # of all hosts together
        self._queues: dict[str, deque[PageState]] = {}  # pages of each host beyond that
        self._urls: set[str] = set()
        self._copies = False  # whether there are any that might be refreshed
        self._credit = 0.0  # orders that are due to those who wait,
        self._others = 0.0  # and of these to other hosts than sites' first ones

    def __len__(self) -> int:
        return len(self._urls)

    def __contains__(self, url: str) -> bool:
        return url in self._urls

    @property
    def compete(self) -> bool:
        """Whether there are pages of more than one site."""
        return len(self._firsts) >= 2

    @property
    def _holds(self) -> bool:
        """Whether first crawls could starve refreshes."""
        return self.compete and self._copies

    def offer(self, state: PageState) -> bool:
        """Whether a page may go in at once; if not it waits here."""
        host = state.page.host
        site = self._site(host)
        self._copies |= state.checked is not None
        if state.checked is None and self.compete and self._firsts[site] != host:
            _put(self._waiting, site, state)
        elif not state.crawls and state.checked is None and self._holds and state.page.importance is None:
            _put(self._fronts, site, state)
        elif not state.crawls and state.page.importance is None and self._untried.get(host, 0) >= MAX_UNTRIED:
            self._queues.setdefault(host, deque()).append(state)
        else:
            self._enters(state)
            return True
        self._urls.add(state.page.url)
        return False

    def tried(self, host: str) -> PageState | None:
        """A page of this host was tried for the first time, or left untried: the page that may go in for that."""
        self._copies = True  # or will be there soon
        left = self._untried.pop(host, 1) - 1
        self._entered = max(self._entered - 1, 0)
        if left:
            self._untried[host] = left
        queue = self._queues.get(host)
        if queue is None or left >= MAX_UNTRIED:
            return None
        state = queue.popleft()
        if not queue:
            del self._queues[host]
        if self._holds:
            _put(self._fronts, self._site(host), state)
            return None
        self._urls.remove(state.page.url)
        self._enters(state)
        return state

    def ordered(self, *, early: bool = False) -> list[PageState]:
        """An order was given: the pages that may go in for that. `early`: it refreshes a copy that is not due."""
        if not self._waiting and not self._fronts:
            return []
        share = max(1 / len(self._firsts), MIN_SHARE)
        others = min(share * len(self._waiting), MAX_SHARE)
        self._others = min(self._others + others, MAX_CREDIT)
        if early and self._fronts and self._entered < MAX_UNTRIED:
            taken = [self._take_from(self._fronts) for _ in range(MAX_LET_IN)]
            self._credit = 0.0  # what goes in for this costs nobody his share
            return [state for state in taken if state is not None]
        self._credit += MAX_SHARE if self._fronts else others
        if self._credit < 1:
            return []
        state = self.take()
        return [state] if state is not None else []

    def take(self) -> PageState | None:
        """The next page, of the site that has waited longest; None if none waits."""
        firsts = self._fronts and (not self._waiting or self._others < 1)
        first, second = (self._fronts, self._waiting) if firsts else (self._waiting, self._fronts)
        return self._take_from(first) or self._take_from(second)

    def _take_from(self, lists: _Lists) -> PageState | None:
        while lists and self._untried.get(next(iter(next(iter(lists.values())))), 0) >= MAX_UNTRIED:
            self._queue_host(lists)
        if not lists:
            return None
        site, hosts = lists.popitem(last=False)
        host, pages = hosts.popitem(last=False)
        state = pages.popleft()
        if pages:
            hosts[host] = pages  # at the end: every host in turn, since the one that was just asked rests,
        if hosts:
            lists[site] = hosts  # and every site
        self._urls.remove(state.page.url)
        self._enters(state)
        # A host that is asked for the first time is asked for its robots.txt, too.
        cost = 1.0 if host in self._begun else 2.0
        self._begun.add(host)
        self._credit = max(self._credit - cost, -cost)
        if lists is self._waiting:
            self._others = max(self._others - cost, -cost)
        return state

    def _queue_host(self, lists: _Lists) -> None:
        """The host that is next has enough pages with the engine: the others wait until these were tried."""
        site, hosts = next(iter(lists.items()))
        host, pages = hosts.popitem(last=False)
        self._queues.setdefault(host, deque()).extend(pages)
        if not hosts:
            del lists[site]

    def pull(self, url: str) -> PageState:
        """A page that waits and shall not any longer."""
        pages, nth = self._find(url)
        state = pages[nth]
        del pages[nth]
        self._tidy(host_of(url))
        self._urls.remove(url)
        return state

    def said(self, page: Page) -> None:
        """The operator says something else of a page that waits."""
        pages, nth = self._find(page.url)
        pages[nth] = replace(pages[nth], page=page)

    def _find(self, url: str) -> tuple[deque[PageState], int]:
        """Where a page waits: among which pages, and at which place."""
        host = host_of(url)
        site = self._site(host)
        nowhere: dict[str, deque[PageState]] = {}
        for lists in (self._fronts.get(site, nowhere), self._waiting.get(site, nowhere), self._queues):
            for nth, state in enumerate(lists.get(host, ())):
                if state.page.url == url:
                    return lists[host], nth
        raise KeyError(url)

    def _tidy(self, host: str) -> None:
        """Leave nothing of a host of which no page waits."""
        site = self._site(host)
        for lists in (self._fronts, self._waiting):
            if (hosts := lists.get(site)) is not None:
                if not hosts.get(host, True):
                    del hosts[host]
                if not hosts:
                    del lists[site]
        if not self._queues.get(host, True):
            del self._queues[host]

    def _enters(self, state: PageState) -> None:
        if not state.crawls:
            self._untried[state.page.host] = self._untried.get(state.page.host, 0) + 1
            self._entered += 1

    def _site(self, host: str) -> str:
        """The site of a host, which is noted."""
        site = self._sites.get(host)
        if site is None:
            site = self._sites[host] = site_of(host)
            self._firsts.setdefault(site, host)
        return site


def _put(lists: _Lists, site: str, state: PageState) -> None:
    lists.setdefault(site, OrderedDict()).setdefault(state.page.host, deque()).append(state)
