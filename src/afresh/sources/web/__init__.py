"""The web: pages by their addresses, asked for over HTTP as politely as their hosts want it.

Before a host is asked for a page, its robots.txt is asked for permission (`permits`), its network address has its turn,
and redirects to other hosts wait for theirs (`asking`). What a page links to becomes pages too, if somebody wants that
(`discovery`), and so does what the site itself lists (`sitemaps`, read when its `agenda` says). `source` is the door.
"""

from afresh.sources.web.discovery import Discovery
from afresh.sources.web.permits import Permits
from afresh.sources.web.source import Web

__all__ = ["Discovery", "Permits", "Web"]
