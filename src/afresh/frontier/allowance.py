"""How many crawls a second politeness allows in all, and what it is that allows no more.

Every host is asked one thing at a time and then rests; hosts on one address share its turns. If all of that together is
less than the budget, the rest of the budget cannot be spent, and the operator wants to know why.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from afresh.frontier.hosts import Rest
from afresh.units import show_duration, show_rate

ENOUGH = 0.95  # of the budget: a rate this close to it is worth no words


@dataclass(frozen=True, slots=True)
class Allowance:
    """What politeness allows at most, whatever the budget."""

    rate: float  # crawls a second
    without_addresses: float  # the same if every host had an address of its own
    hosts: int
    sharing: int  # hosts on addresses that allow less than their hosts do
    addresses: int  # number of addresses
    rest: float  # seconds that a host rests, the most usual one's
    because: str  # what asks for that rest: a setting, "Crawl-delay" or "failures"

    def sentence(self, budget: float) -> str:
        """What to tell the owner of a budget; "" if all of it can be spent.

        >>> Allowance(6.7, 50.0, 50, 50, 1, 1.0, "politeness.shortest_gap").sentence(20.0)
        'politeness allows 6.7/s of your 20/s: 50 hosts share one address (politeness.address_share)'
        """
        if not self.hosts or self.rate >= ENOUGH * budget:
            return ""
        said = f"politeness allows {show_rate(self.rate)} of your {show_rate(budget)}: "
        if self.sharing and self.without_addresses > self.rate / ENOUGH:
            places = "one address" if self.addresses == 1 else f"{self.addresses} addresses"
            return f"{said}{self.sharing} hosts share {places} (politeness.address_share)"
        count = "one host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"{said}{count}, asked once in {show_duration(self.rest)} each ({self.because})"

    def to_text(self) -> str:
        """All of it, for `from_text`."""
        values = asdict(self)
        return json.dumps({name: None if value == math.inf else value for name, value in values.items()})

    @classmethod
    def from_text(cls, text: str | None) -> "Allowance | None":
        """What `to_text` wrote; None if there is nothing that can be read."""
        try:
            found = json.loads(text or "")
            return cls(
                rate=_number(found["rate"]),
                without_addresses=_number(found["without_addresses"]),
                hosts=int(found["hosts"]),
                sharing=int(found["sharing"]),
                addresses=int(found["addresses"]),
                rest=_number(found["rest"]),
                because=str(found["because"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def allowance(
    rests: Iterable[tuple[str, Rest]],
    address_of: Callable[[str], str] = lambda host: "",
    turns: Callable[[str], float] = lambda address: math.inf,
) -> Allowance:
    """What hosts with these rests allow, if each address allows this many requests a second ("": no limit)."""
    free, hosts, usual = 0.0, 0, Counter[Rest]()
    wanted: dict[str, float] = {}
    names = Counter[str]()
    for host, rest in rests:
        rate = 1.0 / rest.seconds if rest.seconds > 0 else math.inf
        hosts += 1
        usual[rest] += 1
        if address := address_of(host):
            wanted[address] = wanted.get(address, 0.0) + rate
            names[address] += 1
        else:
            free += rate
    short = [address for address, rate in wanted.items() if turns(address) < rate and names[address] > 1]
    rest = usual.most_common(1)[0][0] if usual else Rest(0.0, "")
    return Allowance(
        rate=free + sum(min(rate, turns(address)) for address, rate in wanted.items()),
        without_addresses=free + sum(wanted.values()),
        hosts=hosts,
        sharing=sum(names[address] for address in short),
        addresses=len(short),
        rest=rest.seconds,
        because=rest.because,
    )
