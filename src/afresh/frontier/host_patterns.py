"""Sets of hosts by pattern: names, and whole domains as `*.name`."""

from collections.abc import Iterable
from ipaddress import IPv6Address

from afresh.errors import ConfigError
from afresh.frontier.url import canonical_or_none, host_of


class HostPatterns:
    """Hosts by name, at any port unless one is given; `*.name` is a domain, the name itself included.

    A name is told however it is written: in capitals, with a dot at its end, or with letters beyond ASCII.

    >>> hosts = HostPatterns(["example.org", "*.Bücher.example", "example.net:8080"])
    >>> ["example.org:81" in hosts, "www.example.org" in hosts, "a.xn--bcher-kva.example." in hosts]
    [True, False, True]
    >>> ["example.net:8080" in hosts, "example.net" in hosts, "" in HostPatterns([])]
    [True, False, False]
    >>> [host in HostPatterns(["*.example.net:81"]) for host in ("a.example.net:81", "example.net:81", "a.example.net")]
    [True, True, False]
    >>> ["[::ffff:7f00:9]:80" in HostPatterns(["127.0.0.9"]), "127.0.0.9" in HostPatterns(["[::ffff:127.0.0.9]"])]
    [True, True]
    """

    __slots__ = ("_domains", "_hosts")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        for pattern in patterns:
            name = _name(pattern)
            (self._domains if name.startswith("*.") else self._hosts).add(name.removeprefix("*."))

    @property
    def names(self) -> set[str]:
        """The names in the patterns."""
        return self._hosts | self._domains

    def __bool__(self) -> bool:
        return bool(self._hosts or self._domains)

    def __contains__(self, host: object) -> bool:
        if not self or not isinstance(host, str):
            return False
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdigit():
            name, port = host, ""
        name = _as_ipv4(name.rstrip("."))
        if name in self._hosts or (port and f"{name}:{port}" in self._hosts):
            return True
        labels = name.split(".") if self._domains else []
        domains = [".".join(labels[nth:]) for nth in range(len(labels))]
        return any(each in self._domains or (port and f"{each}:{port}" in self._domains) for each in domains)


def _as_ipv4(name: str) -> str:
    """An IPv4 address that is written as an IPv6 one, as itself: it leads to the same host."""
    if not name.startswith("[::ffff:"):
        return name
    try:
        mapped = IPv6Address(name.strip("[]")).ipv4_mapped
    except ValueError:
        return name
    return name if mapped is None else str(mapped)


def _name(pattern: str) -> str:
    plain = pattern.strip().lower().removeprefix("http://").removeprefix("https://").rstrip("/")
    star = "*." if plain.startswith("*.") else ""
    name = plain.removeprefix("*.")
    url = canonical_or_none(f"http://{name}/") if name and not set(name) & set("/*?#@\\") else None
    if url is None:
        raise ConfigError(f"{pattern!r} is not a host.", hint="Write a name such as example.org, or *.example.org.")
    host, colon, port = host_of(url).rpartition(":")
    if colon and port.isdigit():
        return f"{star}{_as_ipv4(host.rstrip('.'))}:{port}"
    return star + _as_ipv4(host_of(url).rstrip("."))
