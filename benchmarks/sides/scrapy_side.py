"""Crawl a site with Scrapy: links extracted, duplicates dropped, bodies compressed into SQLite; print what it cost.

Run by benchmarks/crawl.py in a process of its own: scrapy_side.py SEED FOLDER
"""

import json
import sqlite3
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import scrapy
import zstandard
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

BATCH = 100
SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": False,
    "COOKIES_ENABLED": False,
}


class Site(scrapy.Spider):
    """Follows every link of one host and keeps every page."""

    name = "site"

    def __init__(self, seed: str, folder: str, **options: object) -> None:
        super().__init__(**options)
        self.start_urls = [seed]
        self.allowed_domains = [urlsplit(seed).hostname]
        self.extractor = LinkExtractor(allow_domains=[urlsplit(seed).netloc], deny_extensions=())
        self.store = sqlite3.connect(Path(folder) / "scrapy.db")
        self.store.execute("PRAGMA journal_mode = WAL")
        self.store.execute("CREATE TABLE copies (url TEXT PRIMARY KEY, fetched REAL, content_type TEXT, body BLOB)")
        self.compressor = zstandard.ZstdCompressor(level=3)
        self.rows: list[tuple[str, float, str, bytes]] = []
        self.pages = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **options):  # type: ignore[no-untyped-def]
        """As Scrapy makes it; the clock starts when the spider is opened."""
        spider = super().from_crawler(crawler, *args, **options)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.closed_down, signals.spider_closed)
        return spider

    def opened(self) -> None:
        """Start the clock."""
        self.began = time.monotonic(), time.process_time()

    def parse(self, response):  # type: ignore[no-untyped-def]
        """Keep the page and follow its links."""
        kind = response.headers.get("Content-Type", b"").decode("latin-1")
        self.rows.append((response.url, time.time(), kind, self.compressor.compress(response.body)))
        self.pages += 1
        if len(self.rows) >= BATCH:
            self.write()
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield scrapy.Request(link.url)

    def write(self) -> None:
        """Make what was gathered durable."""
        with self.store:
            self.store.executemany("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?)", self.rows)
        self.rows.clear()

    def closed_down(self) -> None:
        """Write the rest and tell."""
        self.write()
        wall, cpu = self.began
        cost = {"pages": self.pages, "cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}
        print(json.dumps({"crawl": cost, "process": {"cpu": time.process_time()}, "version": scrapy.__version__}))


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    process.crawl(Site, seed=sys.argv[1], folder=sys.argv[2])
    process.start()
