"""Limits for each network address, whatever names it goes by.

A million host names can lead to one machine, which would then meet a million polite crawlers at once. So an address has
its own turn: a limit of requests at a time, a gap after each, and a limit of names that may be crawled.
"""

from dataclasses import dataclass
from ipaddress import ip_address

from afresh.frontier.politeness import Politeness

SHORTEST_STEP = 0.05  # seconds between two of those who wait for an address
KEPT_SECONDS = 60.0  # for which it is believed that a host is at an address


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """What one address may be asked."""

    at_once: int = 8  # requests, over all its names
    gap_share: float = 0.1  # of the gap that a host gets: many small sites share an address in earnest
    names: int = 10_000  # hosts that are let in
    addresses: int = 1_000_000  # remembered at most,
    hosts: int = 100_000  # and hosts at them
    loopback: bool = False  # whether this machine itself is limited too: trying things out on it disturbs nobody


@dataclass(slots=True)
class _Address:
    running: int = 0
    ready: float = 0.0
    names: int = 0
    gap: float = 0.0  # after its last answer
    took: float = 0.0  # and how long that was in coming
    promised: float = 0.0  # the last moment that somebody was told to come again at


@dataclass(slots=True)
class _Place:
    """Where a host is."""

    address: str = ""  # "": nobody knows, or no limits hold there
    until: float = 0.0  # believed
    counted: str = ""  # the address among whose names it is


class Addresses:
    """How busy each address is, and which host is at which.

    Invariant: no address ever has more than `at_once` requests running, nor more than `names` of the hosts that are
    remembered. What is remembered is bounded: when there are too many, an address without a running request is
    forgotten, the least recently used, or the host that was found longest ago.

    >>> addresses = Addresses(AddressLimits(at_once=1))
    >>> addresses.start("192.0.2.1", now=0.0), addresses.start("192.0.2.1", now=0.0)
    (True, False)
    >>> addresses.finish("192.0.2.1", now=1.0, took=0.5)
    >>> addresses.ready("192.0.2.1"), addresses.start("192.0.2.1", now=1.2), addresses.start("192.0.2.1", now=1.5)
    (1.5, False, True)
    """

    def __init__(self, limits: AddressLimits | None = None, politeness: Politeness | None = None) -> None:
        self.limits = limits or AddressLimits()
        self.politeness = politeness or Politeness()
        self._known: dict[str, _Address] = {}
        self._hosts: dict[str, _Place] = {}

    def __len__(self) -> int:
        return len(self._known)

    def limits_apply(self, address: str) -> bool:
        """Whether an address has limits; none has whose name is not a number.

        >>> addresses = Addresses()
        >>> addresses.limits_apply("192.0.2.1"), addresses.limits_apply("127.0.0.9"), addresses.limits_apply("")
        (True, False, False)
        """
        if not address or self.limits.loopback:
            return bool(address)
        try:
            return not ip_address(address.partition("%")[0]).is_loopback
        except ValueError:
            return True

    def turns(self, address: str) -> float:
        """How many requests a second those who wait for an address can send, as they are told to come again."""
        known = self._known.get(address) or _Address(gap=self.limits.gap_share * self.politeness.gap(0.0))
        return 1.0 / self._step(known)

    @staticmethod
    def _step(known: _Address) -> float:
        return max(known.gap + known.took, SHORTEST_STEP)

    def where(self, host: str, now: float) -> str | None:
        """The address whose limits hold for a host ("": none do); None if that must be found (out again)."""
        place = self._hosts.get(host)
        return None if place is None or now >= place.until else place.address

    def found(self, host: str, address: str, now: float) -> str:
        """A host is at an address; the one whose limits hold for it."""
        place = self._place(host)
        place.address, place.until = address if self.limits_apply(address) else "", now + KEPT_SECONDS
        return place.address

    def of(self, host: str) -> str:
        """The address whose limits hold for a host, as it was last found; "" if none do, or it is not known yet."""
        place = self._hosts.get(host)
        return "" if place is None else place.address

    def admit(self, host: str, address: str) -> bool:
        """Count a host among the names of an address, once; False if that has too many."""
        if (known_at := self._hosts.get(host)) is not None and known_at.counted == address:
            return True
        known = self._get(address)
        if known.names >= self.limits.names:
            return False
        place = self._place(host)
        self._leaves(place)
        place.counted = address
        known.names += 1
        return True

    def _place(self, host: str) -> _Place:
        place = self._hosts.pop(host, None) or _Place()
        if len(self._hosts) >= self.limits.hosts:
            # The one that was found longest ago; it is counted again when it comes again.
            self._leaves(self._hosts.pop(next(iter(self._hosts))))
        self._hosts[host] = place
        return place

    def _leaves(self, place: _Place) -> None:
        """A host is not counted where it was any more."""
        if (known := self._known.get(place.counted)) is not None:
            known.names = max(known.names - 1, 0)
        place.counted = ""

    def ready(self, address: str) -> float:
        """When the address may be asked next, as far as its gap goes."""
        known = self._known.get(address)
        return known.ready if known else 0.0

    def start(self, address: str, now: float) -> bool:
        """Take the right to send one request, if there is one; every True ends in one `finish`."""
        known = self._get(address)
        if known.running >= self.limits.at_once or now < known.ready:
            return False
        known.running += 1
        return True

    def finish(self, address: str, *, now: float, took: float) -> None:
        """Give the right back; the address rests a while."""
        known = self._known[address]
        known.running -= 1
        known.gap, known.took = self.limits.gap_share * self.politeness.gap(took), took
        known.ready = max(known.ready, now + known.gap)

    def later(self, address: str, now: float) -> float:
        """When to come again after `start` said no: a moment of one's own, so that those who wait do not all return."""
        known = self._get(address)
        latest = now + self.politeness.longest_back_off
        # As long after the one before as its answer and the rest after it take: who comes sooner is sent away again.
        known.promised = min(max(known.promised, known.ready, now) + self._step(known), latest)
        return known.promised

    def _get(self, address: str) -> _Address:
        known = self._known.pop(address, None) or _Address()
        if len(self._known) >= self.limits.addresses:
            self._forget()
        self._known[address] = known  # at the end again: the order is that of use
        return known

    def _forget(self) -> None:
        # Limited in steps: keeping the oldest ones busy cannot make this slow.
        for _ in range(min(64, len(self._known))):
            address = next(iter(self._known))
            known = self._known.pop(address)
            if not known.running:
                return
            self._known[address] = known
