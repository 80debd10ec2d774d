"""The papers of a host besides its pages: robots.txt, sitemaps, feeds.

`epoch` is the Unix time at which the site's clock showed 0.
"""

from datetime import UTC, datetime
from email.utils import formatdate
from html import escape

from afresh.sim.web import dice
from afresh.sim.web.dice import Stream
from afresh.sim.web.site import Site

PART = 1000  # addresses in one sitemap; larger hosts get an index of several
_SITEMAP = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def date_time(unix: float) -> str:
    """A moment as sitemaps and Atom write it, to the millisecond.

    >>> date_time(0.25)
    '1970-01-01T00:00:00.250+00:00'
    """
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds")


class Documents:
    """Writes the documents of all hosts of a site that is served on a port."""

    def __init__(self, site: Site, *, port: int, epoch: float) -> None:
        self.site, self.port, self.epoch = site, port, epoch
        self._key = dice.key(site.options.seed, Stream.KEY)

    def home(self, host: int) -> str:
        """The address of a host, without a slash at the end."""
        return f"http://{self.site.hosts[host]}:{self.port}"

    def ping_key(self, host: int) -> str:
        """The key that a host signs its IndexNow pings with."""
        return f"{dice.bits(self._key, host, 1):016x}{dice.bits(self._key, host, 2):016x}"

    def document(self, host: int, path: str, t: float) -> tuple[str, str] | None:
        """The (content type, text) of a path at a moment, None if the host has no such document."""
        if path == "/robots.txt":
            return "text/plain", self.robots(host)
        if path.startswith("/sitemap") and path.endswith(".xml"):
            text = self.sitemap(host, path.removeprefix("/sitemap").removesuffix(".xml"), t)
            return None if text is None else ("application/xml", text)
        if path == "/feed.xml" and self.site.host_kinds[host].feed:
            return self.feed(host, t)
        if path == f"/{self.ping_key(host)}.txt":
            return "text/plain", self.ping_key(host)
        return None

    def robots(self, host: int) -> str:
        """robots.txt: what is forbidden, how slowly to come, where the sitemap is."""
        lines = ["User-agent: *", "Disallow: /private/"]
        if self.site.options.crawl_delay > 0:
            lines.append(f"Crawl-delay: {self.site.options.crawl_delay:g}")
        if self.has_sitemap(host):
            lines.append(f"Sitemap: {self.home(host)}/sitemap.xml")
        return "\n".join(lines) + "\n"

    def has_sitemap(self, host: int) -> bool:
        """Whether the host has a sitemap."""
        return bool(self.site.sitemap.member[host])

    def sitemap(self, host: int, part: str, t: float) -> str | None:
        """The sitemap ("" for part), the index in its place on a large host, or one part of that ("-0", "-1", …)."""
        pages = self._listed(host, t)
        parts = [pages[start : start + PART] for start in range(0, len(pages), PART)] or [[]]
        if not self.has_sitemap(host):
            return None
        if part == "" and len(parts) == 1:
            return self._urlset(parts[0], t)
        if part == "":
            rows = [
                f"<sitemap><loc>{self.home(host)}/sitemap-{number}.xml</loc>"
                f"<lastmod>{self._moment(max(self.site.sitemap.last(page, t) for page in chunk))}</lastmod></sitemap>"
                for number, chunk in enumerate(parts)
            ]
            return f"{_XML}<sitemapindex {_SITEMAP}>\n" + "\n".join(rows) + "\n</sitemapindex>\n"
        number = part.removeprefix("-")
        if len(parts) > 1 and number.isascii() and number.isdigit() and int(number[:9]) < len(parts):
            return self._urlset(parts[int(number)], t)
        return None

    def _listed(self, host: int, t: float) -> list[int]:
        gone, hidden = self.site.gone_at, self.site.disallowed
        return [page for page in self.site.pages_of(host) if gone[page] > t and not hidden[page]]

    def _urlset(self, pages: list[int], t: float) -> str:
        rows = [
            f"<url><loc>{escape(self.site.url(page, self.port))}</loc>"
            f"<lastmod>{self._moment(self.site.sitemap.last(page, t))}</lastmod></url>"
            for page in pages
        ]
        return f"{_XML}<urlset {_SITEMAP}>\n" + "\n".join(rows) + "\n</urlset>\n"

    def _moment(self, t: float) -> str:
        return date_time(self.epoch + t)

    def feed(self, host: int, t: float) -> tuple[str, str]:
        """The host's latest changes, newest first, as RSS or Atom."""
        pages = self._listed(host, t)
        latest = sorted(((self.site.last_change(page, t), page) for page in pages), reverse=True)
        items = latest[: self.site.options.feed_items]
        if self.site.host_kinds[host].feed == "rss":
            return "application/rss+xml", self._rss(host, items, t)
        return "application/atom+xml", self._atom(host, items, t)

    def _named(self, page: int, t: float) -> tuple[str, str, int]:
        version = self.site.version(page, t)
        name = self.site.renderer.title(self.site.kind(page).name, page, version)
        return escape(self.site.url(page, self.port)), escape(name), version

    def _rss(self, host: int, items: list[tuple[float, int]], t: float) -> str:
        home, rows = self.home(host), []
        for moment, page in items:
            url, name, version = self._named(page, t)
            rows.append(
                f"<item><title>{name}</title><link>{url}</link>"
                f'<guid isPermaLink="false">{url}#{version}</guid>'
                f"<pubDate>{formatdate(self.epoch + moment, usegmt=True)}</pubDate></item>"
            )
        return (
            f'{_XML}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
            f"<title>{self.site.hosts[host]}</title><link>{home}/</link><description>Latest changes</description>"
            f'<atom:link href="{home}/feed.xml" rel="self" type="application/rss+xml"/>\n'
            + "\n".join(rows)
            + "\n</channel></rss>\n"
        )

    def _atom(self, host: int, items: list[tuple[float, int]], t: float) -> str:
        home, rows = self.home(host), []
        for moment, page in items:
            url, name, _ = self._named(page, t)
            rows.append(
                f'<entry><title>{name}</title><link href="{url}"/><id>{url}</id>'
                f"<updated>{self._moment(moment)}</updated></entry>"
            )
        newest = self._moment(items[0][0] if items else 0.0)
        return (
            f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{self.site.hosts[host]}</title>'
            f'<id>{home}/</id><link href="{home}/"/><link rel="self" href="{home}/feed.xml"/>'
            f"<updated>{newest}</updated><author><name>{self.site.hosts[host]}</name></author>\n"
            + "\n".join(rows)
            + "\n</feed>\n"
        )
