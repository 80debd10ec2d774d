"""A synthetic web: hosts, pages, how popular they are, how they change, link and announce it. Pure and repeatable.

Pages are numbers from 0, in blocks by host; the first page of each block is that host's front page. Time is
seconds since the site started.
"""

from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web import dice, draw
from afresh.sim.web.announce import Announcer
from afresh.sim.web.changes import Process, Timeline
from afresh.sim.web.dice import Stream
from afresh.sim.web.options import Kind, SiteOptions
from afresh.sim.web.render import QUIET, Noise, Renderer

GONE = -2  # the version of a deleted page
_CHILDREN = 8  # pages that a page leads to further down


class Site:
    """Everything that is true of a synthetic web, at every moment.

    >>> site = Site(SiteOptions(pages=100, hosts=4, seed=3))
    >>> site.url(0, 8400).startswith("http://") and site.find(site.url(7, 8400)) == 7
    True
    """

    def __init__(self, options: SiteOptions | None = None) -> None:
        self.options = options = options or SiteOptions()
        self._layout = dice.key(options.seed, Stream.LAYOUT)
        self.host_kinds = draw.host_kinds(options)
        self.hosts = draw.host_names(self.host_kinds)
        self.first_page = draw.first_pages(options)
        sizes = np.diff(np.append(self.first_page, options.pages))
        self.host_of: NDArray[np.int32] = np.repeat(np.arange(options.hosts, dtype=np.int32), sizes)
        self.change_rate = draw.change_rates(options, self.host_kinds, self.host_of)
        self.request_rate = draw.request_rates(options, self.change_rate)
        self.timeline = self._timeline()
        self.gone_at = draw.deletions(options, self.first_page)
        self.renderer = Renderer(options.seed, dressed=options.dressed)
        self.sitemap = self._announcer(Stream.SITEMAP, options.sitemap_share, "sitemap")
        self.pings = self._announcer(Stream.PING, options.ping_share, "ping")
        self._draw_manners()
        self._paths = self._name_pages()
        self._host_number = {name: number for number, name in enumerate(self.hosts)}
        self._page_at = {(int(self.host_of[page]), path): page for page, path in enumerate(self._paths)}

    def _timeline(self) -> Timeline:
        options = self.options
        laws = {"poisson": Process.POISSON, "rhythm": Process.RHYTHM, "bursts": Process.BURSTS}
        by_host = [laws.get(options.processes, kind.process) for kind in self.host_kinds]
        zones = dice.uniform_many(self._layout, np.arange(options.hosts), 20)
        return Timeline(
            options.seed,
            self.change_rate,
            processes=np.array(by_host, np.int8)[self.host_of],
            day=options.day,
            phases=zones[self.host_of],
        )

    def _announcer(self, stream: Stream, host_share: float, prefix: str) -> Announcer:
        options = self.options
        wanted: float = getattr(options, f"{prefix}_recall")
        precise: float = getattr(options, f"{prefix}_precision")
        pages = np.arange(options.pages)
        luck = dice.key(options.seed, (stream << 8) + Stream.QUALITY)

        def spread(mean: float, count: int) -> NDArray[np.float64]:
            width = options.signal_spread * min(mean, 1.0 - mean)
            return np.asarray(mean + width * (2.0 * dice.uniform_many(luck, pages, count) - 1.0))

        # The share is met exactly: the hosts with the lowest draws take part.
        draws = dice.uniform_many(luck, np.arange(options.hosts), 2)
        member = np.argsort(np.argsort(draws, kind="stable"), kind="stable") < round(host_share * options.hosts)
        recall = np.where(member[self.host_of], spread(wanted, 0), 0.0)
        precision = np.maximum(spread(precise, 1), 1e-6)
        return Announcer(
            self.timeline,
            seed=options.seed,
            stream=stream,
            recall=recall,
            false_rate=recall * self.change_rate * (1.0 - precision) / precision,
            delay=options.ping_delay * options.day if stream == Stream.PING else 0.0,
            member=member,
            storm_rate=options.storms_per_day / options.day,
            host_of=self.host_of,
            gone_at=self.gone_at,
        )

    def _draw_manners(self) -> None:
        """Which pages are noisy, which send validators, which of these lie, which robots.txt forbids."""
        options, pages = self.options, np.arange(self.options.pages)
        stream = dice.key(options.seed, Stream.VALIDATOR)

        def share(count: int, size: float) -> NDArray[np.bool_]:
            return np.asarray(dice.uniform_many(stream, pages, count) < size)

        self.noisy = share(0, options.noise_share)
        self.noisy_text = share(1, options.noisy_text_share)
        self.etag = share(2, options.etag_share)
        self.etag_wrong = self.etag & share(3, options.etag_wrong_share)
        self.last_modified = share(4, options.last_modified_share)
        self.last_modified_wrong = self.last_modified & share(5, options.last_modified_wrong_share)
        self.disallowed = share(6, options.disallowed_share)
        self.disallowed[self.first_page] = False
        self.tag_key = dice.key(options.seed, Stream.KEY)

    def _name_pages(self) -> list[str]:
        paths = []
        for page in range(self.options.pages):
            host = int(self.host_of[page])
            kind, local = self.host_kinds[host], page - int(self.first_page[host])
            if local == 0:
                paths.append("/")
                continue
            words = self.renderer.title(kind.name, page, 0).lower().replace(":", "").split()[:6]
            folder = "/private" + kind.folder if self.disallowed[page] else kind.folder
            paths.append(f"{folder}{'-'.join(words)}-{local}")
        return paths

    # What it is asked -----------------------------------------------------------------------------------------

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of each page's changes that send a ping (λ)."""
        return self.pings.recall

    @property
    def false_rate(self) -> NDArray[np.float64]:
        """Rate of each page's pings that mean nothing (ν), storms included."""
        return self.pings.all_false_rate

    def kind(self, page: int) -> Kind:
        """The kind of host that a page is on."""
        return self.host_kinds[int(self.host_of[page])]

    def host(self, page: int) -> str:
        """The host name of a page."""
        return self.hosts[int(self.host_of[page])]

    def path(self, page: int) -> str:
        """The page's path on its host."""
        return self._paths[page]

    def url(self, page: int, port: int) -> str:
        """The page's address when the site is served on this port."""
        return f"http://{self.hosts[self.host_of[page]]}:{port}{self._paths[page]}"

    def pages_of(self, host: int) -> range:
        """The pages of a host, by the host's number."""
        end = self.first_page[host + 1] if host + 1 < len(self.hosts) else self.options.pages
        return range(int(self.first_page[host]), int(end))

    def host_number(self, name: str) -> int | None:
        """The number of a host name, None if it is not one of this site's."""
        return self._host_number.get(name)

    def page_at(self, host: int, path: str) -> int | None:
        """The page at a path of a host, None if there is none."""
        return self._page_at.get((host, path))

    def find(self, url: str) -> int | None:
        """The page at an address (whatever the port), None if it is not one of this site's."""
        try:
            parts = urlsplit(url)
            number = self._host_number.get(parts.hostname or "")
        except ValueError:
            return None
        return None if number is None or parts.query else self._page_at.get((number, parts.path or "/"))

    def version(self, page: int, t: float) -> int:
        """The page's version at a moment; `GONE` once it is deleted."""
        return GONE if t >= self.gone_at[page] else self.timeline.version(page, t)

    def versions(self, t: float) -> NDArray[np.int64]:
        """`version` of all pages."""
        return np.where(self.gone_at <= t, GONE, self.timeline.versions(t))

    def next_change(self, page: int, t: float) -> float:
        """When the page will next change or be deleted; infinity if never."""
        gone = float(self.gone_at[page])
        return float("inf") if t >= gone else min(gone, self.timeline.next_change(page, t))

    def last_change(self, page: int, t: float) -> float:
        """When the page's present state began (before 0 for states older than the site's start)."""
        gone = float(self.gone_at[page])
        return gone if t >= gone else self.timeline.last_change(page, t)

    def changes(self, page: int, t0: float, t1: float) -> list[float]:
        """The moments in [t0, t1) at which the page changes or is deleted."""
        gone = float(self.gone_at[page])
        if gone >= t1:
            return self.timeline.changes(page, t0, t1)
        return [t for t in self.timeline.changes(page, t0, t1) if t < gone] + ([gone] if gone >= t0 else [])

    def signals(self, t0: float, t1: float) -> list[tuple[float, int]]:
        """All pings in [t0, t1), as (time, page), in order."""
        found = [
            (moment, page)
            for page in np.flatnonzero(self.pings.member[self.host_of]).tolist()
            for moment, _ in self.pings.between(page, t0, t1)
        ]
        return sorted(found)

    def links(self, page: int) -> list[int]:
        """The pages that a page links to: its children in the host's tree, some neighbours, rarely other hosts.

        Child k of a host's n-th page is its page 8n + k, so each page can be reached from the front page.
        """
        host = int(self.host_of[page])
        own = self.pages_of(host)
        local, size = page - own.start, len(own)
        found = [own[child] for child in range(_CHILDREN * local + 1, min(_CHILDREN * (local + 1) + 1, size))]
        stream = dice.key(self.options.seed, Stream.LINK)
        found += [own[dice.bits(stream, page, count) % size] for count in range(3)]
        for count in range(3, 5):
            number = dice.bits(stream, page, count)
            if number % 4 == 0:
                found.append((number >> 8) % self.options.pages)
        return [target for target in dict.fromkeys(found) if target != page]

    def body(self, page: int, version: int, *, port: int = 80, moment: Noise = QUIET) -> bytes:
        """The page's HTML at a version; links to other hosts carry the port."""
        kind = self.kind(page)

        def links() -> list[tuple[str, str]]:
            here = self.host_of[page]
            return [
                (
                    self._paths[target] if self.host_of[target] == here else self.url(target, port),
                    self.renderer.title(self.kind(target).name, target, 0),
                )
                for target in self.links(page)
            ]

        return self.renderer.body(
            page,
            version,
            kind=kind.name,
            host=self.host(page),
            paragraphs=self._paragraphs(page),
            links=links,
            noise=(bool(self.noisy[page]), bool(self.noisy_text[page])),
            moment=moment,
        )

    def _paragraphs(self, page: int) -> int:
        low, high = self.kind(page).paragraphs
        # Short pages are common, long ones rare: the square of a uniform number.
        return low + int((high - low + 1) * dice.uniform(self._layout, page, 10) ** 2)
