"""The one guard: which addresses and ports may be reached at all.

It stands where the socket is made, after every parser, redirect and name lookup, so that no spelling of a URL gets past
it; and the socket it returns goes to the very address that it looked at.
"""

import ipaddress
import socket
from collections.abc import Container, Iterable
from typing import Any

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Written out rather than taken from ipaddress.is_global, whose opinion differs between releases of Python.
_CLOSED_4 = [
    ipaddress.IPv4Network(each)
    for each in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),  # the last one holds broadcast
    )
]
_OPEN_6 = ipaddress.IPv6Network("2000::/3")  # all that is given out to the public
_CLOSED_6 = [
    ipaddress.IPv6Network(each)
    for each in (
        "2001::/23",  # protocols' own, among them Teredo, which hides an IPv4 address
        "2001:db8::/32",  # examples
        "2002::/16",  # 6to4: an IPv4 address in disguise, and out of use
        "3fff::/20",  # examples
    )
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

# Services that are not for the web: a request to one is a mistake or an attack through us. Below 1024 all but 80 and
# 443 are closed anyway.
_SERVICES = frozenset(
    {
        *(1080, 1194, 1433, 1434, 1521, 1522, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3268),
        *(3269, 3306, 3389, 3659, 3690, 4045, 4190, 4369, 5037, 5060, 5061, 5432, 5433, 5671, 5672, 5900, 5901, 5984),
        *(6379, 6380, 6432, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 7199, 7687, 8883, 9042, 9092),
        *(9160, 9418, 9999, 10080, 10250, 10255, 11211, 26257, 26379, 27017, 27018, 27019, 28015),
        *range(6000, 6064),  # X11
    }
)


class Refused(OSError):
    """The guard said no. The message never tells what a name resolved to: that would map a private network."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def public(address: Address) -> bool:
    """Whether an address belongs to the public Internet, seen through the ways to write IPv4 inside IPv6.

    >>> public(ipaddress.ip_address("93.184.216.34")), public(ipaddress.ip_address("::ffff:10.0.0.1"))
    (True, False)
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        if inner is None:
            return address in _OPEN_6 and not any(address in network for network in _CLOSED_6)
        address = inner
    return not any(address in network for network in _CLOSED_4)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that is really reached through this one, if so."""
    if address in _NAT64:  # on networks without IPv4 every IPv4 site is reached this way
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


class Guard:
    """Decides about hosts, addresses and ports.

    Public addresses only, unless `allow_private` opens all or `networks` opens some. Ports 80, 443 and those from 1024
    that are not known to belong to another service, and besides them those in `ports`. No host that is in `never`.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        networks: Iterable[Network] = (),
        ports: Iterable[int] = (),
        never: Container[str] = (),
    ) -> None:
        self.allow_private = allow_private
        self.networks = tuple(networks)
        self.ports = frozenset(ports)
        self.never = never

    def check_host(self, host: str) -> None:
        """Refused if this host, with its port if it has one, is never to be asked."""
        if host in self.never:
            raise Refused("scope", "The host is never to be asked.")

    def check_port(self, port: int) -> None:
        """Refused if this port is not for the web."""
        usual = port in (80, 443) or (port >= 1024 and port not in _SERVICES)
        if not usual and port not in self.ports:
            raise Refused("refused_port", f"Port {port} is not for the web.")

    def check_address(self, text: str) -> None:
        """Refused if this address, in its numeric form, is not public."""
        if self.allow_private:
            return
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise Refused("refused_address", "The address is not one.") from None
        if isinstance(address, ipaddress.IPv6Address):
            address = _inner(address) or address
        if not public(address) and not any(address in network for network in self.networks):
            raise Refused("refused_address", "The address is not public.")

    def socket(self, info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """A socket for an address that was looked at; nothing can come between the look and the connection."""
        family, kind, protocol, _, address = info
        self.check_address(str(address[0]))
        self.check_port(int(address[1]))
        return socket.socket(family=family, type=kind, proto=protocol)
