"""Pages without a copy, of sites with many hosts: they wait for their site's share, so that no site starves others.

A first crawl gains more than any refresh, and every host has a turn of its own. So one domain that offers a thousand
host names could take every turn for as long as they last. Therefore only the first host of a site (a registrable
domain) goes in as it comes. Pages of its other hosts wait here while other sites are kept, too. They go in when a site
is due its share of the orders, and when there is nothing else to do: no part of the budget is lost to fairness.

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
MAX_SHARE = 1 / 2  # for those of all sites together
MAX_UNTRIED = 64  # pages of one host with the engine that were never tried


class Newcomers:
    """Pages that wait for a first crawl, and which goes next: every site has the same share.

    Invariant: a page is either with the engine or here, never both.
    """

    def __init__(self) -> None:
        self._sites: dict[str, str] = {}  # by host
        self._firsts: dict[str, str] = {}  # the first host of each site
        self._begun: set[str] = set()  # other hosts that have gone in: their robots.txt need not be fetched first
        # By site and by host, the next ones first.
        self._waiting: OrderedDict[str, OrderedDict[str, deque[PageState]]] = OrderedDict()
        self._untried: dict[str, int] = {}  # pages of each host that went in and were not tried yet
        self._queues: dict[str, deque[PageState]] = {}  # pages of each host beyond that
        self._urls: set[str] = set()
        self._credit = 0.0  # orders that are due to those who wait

    def __len__(self) -> int:
        return len(self._urls)

    def __contains__(self, url: str) -> bool:
        return url in self._urls

    @property
    def compete(self) -> bool:
        """Whether there are pages of more than one site."""
        return len(self._firsts) >= 2

    def offer(self, state: PageState) -> bool:
        """Whether a page may go in at once; if not it waits here."""
        host = state.page.host
        site = self._site(host)
        if state.checked is None and self.compete and self._firsts[site] != host:
            self._waiting.setdefault(site, OrderedDict()).setdefault(host, deque()).append(state)
        elif not state.crawls and state.page.importance is None and self._untried.get(host, 0) >= MAX_UNTRIED:
            self._queues.setdefault(host, deque()).append(state)
        else:
            self._enters(state)
            return True
        self._urls.add(state.page.url)
        return False

    def tried(self, host: str) -> PageState | None:
        """A page of this host was tried for the first time: the page that may go in for that."""
        left = self._untried.pop(host, 1) - 1
        if left:
            self._untried[host] = left
        queue = self._queues.get(host)
        if queue is None or left >= MAX_UNTRIED:
            return None
        state = queue.popleft()
        if not queue:
            del self._queues[host]
        self._urls.remove(state.page.url)
        self._enters(state)
        return state

    def ordered(self) -> PageState | None:
        """An order was given: the page that may go in for that, if those who wait are due one."""
        if not self._waiting:
            return None
        share = max(1 / len(self._firsts), MIN_SHARE)
        self._credit += min(share * len(self._waiting), MAX_SHARE)
        return self.take() if self._credit >= 1 else None

    def pull(self, url: str) -> PageState:
        """A page that waits and shall not any longer."""
        site, host, nth = self._find(url)
        pages = self._waiting[site][host]
        state = pages[nth]
        del pages[nth]
        if not pages:
            del self._waiting[site][host]
        if not self._waiting[site]:
            del self._waiting[site]
        self._urls.remove(url)
        return state

    def said(self, page: Page) -> None:
        """The operator says something else of a page that waits."""
        site, host, nth = self._find(page.url)
        pages = self._waiting[site][host]
        pages[nth] = replace(pages[nth], page=page)

    def _find(self, url: str) -> tuple[str, str, int]:
        """Where a page waits: its site, its host and its place among that one's pages."""
        host = host_of(url)
        site = self._site(host)
        nth = next(nth for nth, state in enumerate(self._waiting[site][host]) if state.page.url == url)
        return site, host, nth

    def take(self) -> PageState | None:
        """The next page, of the site that has waited longest; None if none waits."""
        if not self._waiting:
            return None
        site, hosts = self._waiting.popitem(last=False)
        host, pages = hosts.popitem(last=False)
        state = pages.popleft()
        if pages:
            hosts[host] = pages  # at the end: every host in turn, since the one that was just asked rests,
        if hosts:
            self._waiting[site] = hosts  # and every site
        self._urls.remove(state.page.url)
        self._enters(state)
        # A host that is asked for the first time is asked for its robots.txt, too.
        cost = 1.0 if host in self._begun else 2.0
        self._begun.add(host)
        self._credit = max(self._credit - cost, -cost)
        return state

    def _enters(self, state: PageState) -> None:
        if not state.crawls:
            self._untried[state.page.host] = self._untried.get(state.page.host, 0) + 1

    def _site(self, host: str) -> str:
        """The site of a host, which is noted."""
        site = self._sites.get(host)
        if site is None:
            site = self._sites[host] = site_of(host)
            self._firsts.setdefault(site, host)
        return site
