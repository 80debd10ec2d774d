"""Which page at which origin a request means."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from afresh.fetch.target import BadTarget, target
from afresh.serve.proxy.request import Refusal, Request

_MIRRORED = re.compile(r"/(https?)://([^/?#@]+)([/?].*)?", re.IGNORECASE)
MOST_REMEMBERED = 4096
LOOPS = 8  # proxies of our kind in a row


@dataclass(frozen=True, slots=True)
class Site:
    """What is said of the pages of an origin."""

    base: str  # scheme, host and port, and a path if there is one, without a slash at its end
    strict: bool = False
    threshold: float = 0.5  # own policy: how probably fresh a copy must be
    serve_stale: bool = False  # own policy: below it, hand it out all the same and ask at once
    named: bool = True  # by the operator: its address passes the guard
    outside: str = ""  # what readers write instead of the base: a prefix, without a slash at its end, or nothing

    def outward(self, address: str) -> str:
        """An address that the origin names, as readers reach it here; as it is, if it is of another place.

        >>> site = Site("http://10.0.0.5/manual", outside="/docs")
        >>> site.outward("http://10.0.0.5/manual/a?b"), site.outward("/manual"), site.outward("http://10.0.0.5/manually")
        ('/docs/a?b', '/docs', 'http://10.0.0.5/manually')
        >>> Site("http://10.0.0.5").outward("http://10.0.0.5//evil.example")
        '/.//evil.example'
        """
        if not self.named:
            return address
        scheme, _, place = self.base.partition("://")
        authority, slash, folder = place.partition("/")
        origin, path = f"{scheme}://{authority}", slash + folder
        if address[: len(origin)].lower() == origin:
            rest = address[len(origin) :]
        elif address.startswith("/") and not address.startswith("//"):
            rest = address
        else:
            return address
        below = rest[len(path) :]
        if not rest.startswith(path) or (below and below[0] not in "/?#"):
            return address
        if not self.outside and below.startswith("//"):
            return "/." + below  # two slashes at the beginning would be another host
        return (self.outside + below) if below.startswith("/") or self.outside else "/" + below


@dataclass(frozen=True, slots=True)
class Routes:
    """What an operator mapped: hosts, prefixes, a default; and the open ways, each with a list of hosts or shut."""

    hosts: Mapping[str, Site] = field(default_factory=dict)
    within: Mapping[str, Sequence[tuple[str, Site]]] = field(default_factory=dict)  # prefixes of hosts, longest first
    prefixes: Sequence[tuple[str, Site]] = ()  # the longest first
    default: Site | None = None
    mirror: Container[str] = ()  # hosts that may be asked for by a path like /https://example.com/page
    forward: bool = False  # whether http:// addresses of any host may be asked for
    never: Container[str] = ()  # hosts that are never asked
    open_strict: bool = False  # whether what comes in by mirror and forward is treated strictly
    open_threshold: float = 0.5
    open_stale: bool = False

    def find(self, request: Request) -> tuple[Site, str] | Refusal:
        """The site and the whole address of what is asked for."""
        if request.path == "*":
            return Refusal(501, "Nothing is said of the server as a whole.")
        host = request.authority
        bare = host.rpartition(":")[0] if ":" in host else host
        if self.within and (found := _under(self.within.get(host) or self.within.get(bare, ()), request.path)):
            return found
        site = self.hosts.get(host) or self.hosts.get(bare)
        if site is not None:
            return _below(site, request.path)
        if request.scheme:
            return self._forwarded(request)
        if found := _under(self.prefixes, request.path):
            return found
        match = _MIRRORED.fullmatch(request.path)
        if match is not None:
            return self._mirrored(match[1].lower(), match[2], match[3] or "/")
        if self.default is not None:
            return _below(self.default, request.path)
        return Refusal(421, "Nothing is served for this host here.")

    def _forwarded(self, request: Request) -> tuple[Site, str] | Refusal:
        if not self.forward:
            return Refusal(403, "This is no forward proxy.")
        if request.scheme != "http":
            return Refusal(400, "Pages over TLS are asked for with CONNECT.")
        return self._open(request.scheme, request.authority, request.path, self.never, wanted=False)

    def _mirrored(self, scheme: str, authority: str, path: str) -> tuple[Site, str] | Refusal:
        return self._open(scheme, authority, "/" + path if path.startswith("?") else path, self.mirror, wanted=True)

    def _open(
        self, scheme: str, authority: str, path: str, hosts: Container[str], *, wanted: bool
    ) -> tuple[Site, str] | Refusal:
        """A page of a host that a reader names; it must be in (or must not be in) the list of hosts."""
        try:
            where = target(f"{scheme}://{authority}/")
        except BadTarget:
            return Refusal(400, "The address is none.")
        listed = where.authority in hosts
        if listed is not wanted or where.authority in self.never:
            return Refusal(403, "This host is not served here.")
        base = str(where).rstrip("/")
        site = Site(base, self.open_strict, self.open_threshold, self.open_stale, named=False)
        return site, base + path


def _under(prefixes: Sequence[tuple[str, Site]], path: str) -> tuple[Site, str] | Refusal | None:
    """A path at the first site with a prefix that it has; None if there is none."""
    for prefix, site in prefixes:
        if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/", "?"):
            rest = path[len(prefix) :]
            return _below(site, rest if rest.startswith("/") else "/" + rest)
    return None


def _below(site: Site, path: str) -> tuple[Site, str] | Refusal:
    """A path at a site; where that is a folder of its origin, nothing leads out of it."""
    if (".." in path or "%" in path) and "/" in site.base.partition("://")[2] and climbs(path):
        return Refusal(400, "The address leads out of what is served here.")
    return site, site.base + path


def climbs(path: str) -> bool:
    """Whether a path has a step upwards, in any spelling that some server takes for one.

    >>> [climbs(path) for path in ("/a/../b", "/%2e%2E/b", "/..%2fb", "/..;/b", "/..%5cb", "/a..b/..c", "/a?/../")]
    [True, True, True, True, True, False, False]
    """
    plain = unquote(unquote(path.partition("?")[0])).replace("\\", "/")  # twice: some servers do
    return any(step.partition(";")[0].rstrip(" \0") == ".." for step in plain.split("/"))


def loops(via: str) -> bool:
    """Whether a request has come through so many proxies of our kind that it goes in a circle.

    >>> loops("1.1 afresh"), loops(", ".join(["1.1 afresh"] * 9))
    (False, True)
    """
    return via.count(" afresh") >= LOOPS
