"""What pages say of their feeds and hubs, where no page is to be found in their links."""

from collections.abc import Callable, Iterator

from afresh.frontier import Links, links
from afresh.reading import Document, Wanted
from afresh.types import Fetched, Page

_WANTED = Wanted(("base", "link"), ("href", "rel", "type"), 512)


class Overhearing:
    """A finder that finds no pages: it looks at what the heads of pages announce, and tells of it."""

    def __init__(self, heard: Callable[[Page, Fetched, Links], None]) -> None:
        self.heard = heard
        self.closed = False

    def know(self, keys: list[str]) -> None:
        """It finds none, so it need not know any."""

    def wanted(self) -> Wanted:
        """What reading is to look for: the tags that name feeds and hubs."""
        return _WANTED

    def met(self, page: Page, fetched: Fetched) -> set[bytes]:
        """Everything is read."""
        return set()

    def links(self, read: Document, page: Page, fetched: Fetched, met: set[bytes]) -> Links:
        """What the page announces. Runs in a thread."""
        return links(read, fetched.location or page.url)

    def follow(self, page: Page, fetched: Fetched, found: Links, met: set[bytes]) -> Iterator[list[Page]]:
        """Tell of it; no page comes of that."""
        self.heard(page, fetched, found)
        return iter(())

    def moved(self, page: Page, fetched: Fetched) -> list[Page]:
        """A page that is elsewhere now is not followed."""
        return []
