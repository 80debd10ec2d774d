"""What a scheduler is told, checked where it comes in: no record can hold more."""

import operator
from math import inf
from typing import Any

from afresh.checks import MAX_MOMENT, moment, number
from afresh.errors import ConfigError
from afresh.schedule.pace import MIN_BUDGET

MAX_RATE = 1e30  # a second, of requests and changes: records hold single-precision numbers
MAX_SIGNALS = 1e15
MAX_COST, MIN_COST = 1e9, 1e-9
MIN_SHAPE = 1e-6
MAX_HOSTS = 100_000_000

# Least and most of what is believed of a page, and whether it may be infinite.
BELIEFS: dict[str, tuple[float, float, bool]] = {
    "request_rate": (0.0, MAX_RATE, False),
    "change_rate": (0.0, MAX_RATE, False),
    "recall": (0.0, 1.0, False),
    "false_rate": (0.0, MAX_RATE, False),
    "cost": (MIN_COST, MAX_COST, False),
    "age": (0.0, inf, True),
    "signals": (0.0, MAX_SIGNALS, False),
    "shape": (MIN_SHAPE, inf, True),
}


def check_page(**given: float) -> None:
    """ConfigError if something that is believed of a page is not a number of its range."""
    for name, value in given.items():
        least, most, infinite = BELIEFS[name]
        number(name, value, least=least, most=most, infinite=infinite)


def check_beliefs(**given: float | None) -> None:
    """The same where None stands for what is not told."""
    check_page(**{name: value for name, value in given.items() if value is not None})


def slot_number(slot: Any, used: int) -> int:
    """The slot, if it is one of those in use so far."""
    found = _index(slot)
    if not 0 <= found < used:
        raise ConfigError(f"slot must be one that add returned, not {slot!r:.40}.", hint="Keep what add returns.")
    return found


def host_number(host: Any, *, least: int = 0) -> int:
    """The host, if it is a whole number for which there may be room."""
    found = _index(host)
    if not least <= found < MAX_HOSTS:
        raise ConfigError(
            f"host must be a whole number from {least} to {MAX_HOSTS:,}, not {host!r:.40}.",
            hint="Count hosts from 0 on.",
        )
    return found


def _index(given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError:
        return -2


def seconds_to_rest(name: str, seconds: Any) -> float:
    """A time to wait, at most for ever and ever."""
    return number(name, seconds, most=MAX_MOMENT)


def later_moment(name: str, until: Any) -> float:
    """A moment up to which something rests; −infinity and infinity are always and never."""
    if type(until) is float and (until == inf or until == -inf):
        return until
    return moment(name, until)


def host_budget(budget: Any) -> float:
    """Cost per second of one host; infinity: it has no budget of its own."""
    return number("budget", budget, least=MIN_BUDGET, infinite=True)


def signal_count(count: Any) -> int:
    """A number of signals."""
    found = _index(count)
    if not 0 <= found <= MAX_SIGNALS:
        raise ConfigError(f"count must be a whole number of at least 0, not {count!r:.40}.", hint="Count signals.")
    return found
