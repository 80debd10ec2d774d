"""How many crawls a second politeness allows in all, and what it is that allows no more.

Every host is asked one thing at a time and then rests; hosts on one address share its turns. If all of that together is
less than the budget, the rest of the budget cannot be spent, and the operator wants to know why.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from afresh.frontier.lanes import FAILURES, Rest
from afresh.units import show_duration, show_rate

NOTICED = 0.05  # of a rest: a mean that differs by less is not said to be one
ENOUGH = 0.95  # of the budget: a rate this close to it is worth no words


@dataclass(frozen=True, slots=True)
class Allowance:
    """What politeness allows at most, whatever the budget."""

    rate: float  # crawls a second
    without_addresses: float  # the same if every host had an address of its own
    hosts: int
    sharing: int  # hosts on addresses that allow less than their hosts do
    addresses: int  # number of addresses
    rest: float  # seconds that a host rests, the most usual one's of those that do not fail (of all, if all do)
    because: str  # what asks for that rest: a setting, "Crawl-delay" or "failures"
    failing: int = 0  # hosts that rest longer because they fail
    mean_rest: float | None = None  # seconds between two requests to a host that does not fail, on average

    def sentence(self, budget: float) -> str:
        """What to tell the owner of a budget; "" if all of it can be spent.

        >>> Allowance(6.7, 50.0, 50, 50, 1, 1.0, "politeness.shortest_gap").sentence(20.0)
        'politeness allows 6.7/s of your 20/s: 50 hosts share one address (politeness.address_share)'
        """
        if not self.hosts or self.rate >= ENOUGH * budget:
            return ""
        reasons = [self._of_failures()] if self.failing else []
        if self.failing < self.hosts:
            reasons.append(self._of_others())
        return f"politeness allows {show_rate(self.rate)} of your {show_rate(budget)}: {'; '.join(reasons)}"

    def _of_failures(self) -> str:
        if self.hosts == 1:
            return "the only host fails and rests longer (see afresh hosts)"
        how_many = f"all {self.hosts}" if self.failing == self.hosts else f"{self.failing} of {self.hosts}"
        return (
            f"{how_many} hosts {'fails and rests' if self.failing == 1 else 'fail and rest'} longer (see afresh hosts)"
        )

    def _of_others(self) -> str:
        if self.sharing and self.without_addresses > self.rate / ENOUGH:
            places = "one address" if self.addresses == 1 else f"{self.addresses} addresses"
            return f"{self.sharing} hosts share {places} (politeness.address_share)"
        others = self.hosts - self.failing
        others_are = "host" if others == 1 else f"{others} hosts"
        count = f"the other {others_are}" if self.failing else "one host" if others == 1 else others_are
        mean = self.rest if self.mean_rest is None else self.mean_rest
        each = "on average" if abs(mean - self.rest) > NOTICED * self.rest else "each" if others > 1 else ""
        asked = " ".join(part for part in (f"asked once in {show_duration(mean)}", each) if part)
        return f"{count}, {asked} ({self.because})"

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
                failing=int(found.get("failing", 0)),
                mean_rest=None if found.get("mean_rest") is None else float(found["mean_rest"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _rate(rest: Rest) -> float:
    return 1.0 / rest.seconds if rest.seconds > 0 else math.inf


def allowance(
    rests: Iterable[tuple[str, Rest]],
    address_of: Callable[[str], str] = lambda host: "",
    turns: Callable[[str], float] = lambda address: math.inf,
    others: tuple[int, Rest] = (0, Rest(0.0, "")),
) -> Allowance:
    """What hosts with these rests allow, if each address allows this many requests a second ("": no limit).

    `others`: how many more hosts there are, and how long each of them rests; nobody knows where these are.
    """
    hosts, first = others
    free, usual = (hosts * _rate(first), Counter({first: hosts})) if hosts else (0.0, Counter[Rest]())
    healthy = free
    wanted: dict[str, float] = {}
    names = Counter[str]()
    for host, rest in rests:
        rate = _rate(rest)
        hosts += 1
        usual[rest] += 1
        fails = rest.because == FAILURES
        healthy += 0.0 if fails else rate
        if address := address_of(host):
            wanted[address] = wanted.get(address, 0.0) + rate
            names[address] += not fails
        else:
            free += rate
    short = [address for address, rate in wanted.items() if turns(address) < rate and names[address] > 1]
    failing = sum(count for rest, count in usual.items() if rest.because == FAILURES)
    healthy_ones = Counter({rest: count for rest, count in usual.items() if rest.because != FAILURES}) or usual
    rest = healthy_ones.most_common(1)[0][0] if healthy_ones else Rest(0.0, "")
    return Allowance(
        rate=free + sum(min(rate, turns(address)) for address, rate in wanted.items()),
        without_addresses=free + sum(wanted.values()),
        hosts=hosts,
        sharing=sum(names[address] for address in short),
        addresses=len(short),
        rest=rest.seconds,
        because=rest.because,
        failing=failing,
        mean_rest=(hosts - failing) / healthy if 0.0 < healthy < math.inf else None,
    )
