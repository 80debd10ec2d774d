"""The only place that knows other units: "10s", "2h", "64MiB", "100/day".

Inside afresh, time is float seconds, rates are per second and sizes are bytes.
"""

import dataclasses
import json
import math
import re
from contextlib import suppress
from typing import Any, Self

from afresh.errors import ConfigError
from afresh.types import Importance

SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "w": 604800.0,
    "week": 604800.0,
    "y": 31557600.0,
    "year": 31557600.0,
}
BYTES = {"": 1, "B": 1}
for _power, _letter in enumerate("kMGT", start=1):
    BYTES[f"{_letter}B"] = 1000**_power
    BYTES[f"{_letter.upper()}iB"] = 1024**_power

_NUMBER = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*"
_QUANTITY = re.compile(_NUMBER + r"([A-Za-z]*)\s*")
_IMPORTANCE = re.compile(r"\s*([xX\u00d7]?)\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+)\s*")
MOST_IMPORTANT = 1e12  # requests per second, or times
_SPENT = re.compile(_NUMBER + r"([A-Za-z]+)\s*(?:/|per\s)\s*([0-9]*)\s*([A-Za-z]+)\s*")
MONEY = ("EUR", "USD", "GBP", "CHF")
_RATE = re.compile(_NUMBER + r"(?:/|per\s)\s*([0-9]*)\s*([A-Za-z]+)\s*")


def _seconds_of(unit: str) -> float | None:
    plain = unit.lower()
    return SECONDS.get(plain) or SECONDS.get(plain.removesuffix("s"))


def _finite(value: float, text: str) -> float:
    if not math.isfinite(value):
        raise ConfigError(f"{text!r} is too large.", hint="Give a smaller number.")
    return value


def duration(text: str | float) -> float:
    """Seconds from text such as "10s", "1.5 h" or "2 days"; a plain number is taken as seconds.

    >>> duration("2h"), duration("250ms"), duration(3)
    (7200.0, 0.25, 3.0)
    """
    match = _QUANTITY.fullmatch(str(text))
    seconds = _seconds_of(match[2] or "s") if match else None
    if match is None or seconds is None:
        raise ConfigError(f"{text!r} is not a duration.", hint='Write it like "10s", "5min", "2h" or "30d".')
    return _finite(float(match[1]) * seconds, str(text))


def with_unit(text: str) -> float:
    """Seconds from text that people type: a bare number is refused, since nobody knows what they meant by it.

    >>> with_unit("5d"), with_unit("0")
    (432000.0, 0.0)
    """
    seconds = duration(text)
    bare = text.strip()
    if seconds and not bare[-1].isalpha():
        raise ConfigError(f"{text!r} has no unit.", hint=f'Write "{bare}s", "{bare}min", "{bare}h" or "{bare}d".')
    return seconds


def rate(text: str | float) -> float:
    """Events per second from text such as "10/s", "100/day" or "3 per 2h"; a plain number is per second.

    >>> rate("100/day") * 86400, rate("10/s"), rate("1 per 2s")
    (100.0, 10.0, 0.5)
    """
    plain = _QUANTITY.fullmatch(str(text))
    if plain is not None and not plain[2]:
        return _finite(float(plain[1]), str(text))
    match = _RATE.fullmatch(str(text))
    seconds = _seconds_of(match[3]) if match else None
    span = float(match[2] or 1) if match else 0.0
    if match is None or seconds is None or span == 0:
        raise ConfigError(f"{text!r} is not a rate.", hint='Write it like "10/s", "600/min" or "5000/day".')
    return _finite(float(match[1]) / (span * seconds), str(text))


class Budget(float):
    """What may be spent a second: a number, and of what (`unit`): calls, seconds, bytes or money.

    >>> budget("0.2 s/s"), budget("0.2 s/s").unit, budget("100/min").unit
    (Budget(0.2, 'seconds'), 'seconds', 'calls')
    """

    unit: str

    def __new__(cls, rate: float, unit: str = "calls") -> Self:
        """So much a second."""
        made = super().__new__(cls, rate)
        made.unit = unit
        return made

    def __repr__(self) -> str:
        return f"Budget({float(self)!r}, {self.unit!r})"


def budget(text: str | float) -> Budget:
    """A budget from text: "10/s" and "100/min" are calls, "0.2 s/s" time that the other side works, "5 MB/s" bytes.

    >>> budget("5 MB/s"), budget("12 min/h"), budget("3 EUR/day") * 86400
    (Budget(5000000.0, 'bytes'), Budget(0.2, 'seconds'), 3.0)
    """
    if isinstance(text, Budget):
        return text
    match = _SPENT.fullmatch(str(text))
    if match is None:
        try:
            return Budget(rate(text))
        except ConfigError as error:
            raise ConfigError(error.message, hint='Write it like "10/s", "100/min", "0.2 s/s" or "5 MB/s".') from None
    spent, span = _seconds_of(match[2]), _seconds_of(match[4])
    count = {name.lower(): count for name, count in BYTES.items() if name}.get(match[2].lower())
    per = float(match[3] or 1) * (span or 0.0)
    if not per > 0:
        raise ConfigError(f"{text!r} is not a budget.", hint='Write it like "10/s", "0.2 s/s" or "5 MB/s".')
    if count is not None:
        return Budget(_finite(float(match[1]) * count / per, str(text)), "bytes")
    if match[2] in MONEY:
        return Budget(_finite(float(match[1]) / per, str(text)), "money")
    if spent is None:
        raise ConfigError(f"{text!r} is not a budget.", hint='Write it like "10/s", "0.2 s/s" or "5 MB/s".')
    return Budget(_finite(float(match[1]) * spent / per, str(text)), "seconds")


def cost(text: str) -> tuple[float, str]:
    """What something costs, and in which unit: "200 kB" is bytes, "0.5 s" time that the other side works.

    >>> cost("200 kB"), cost("500ms"), cost("0.01 EUR")
    ((200000.0, 'bytes'), (0.5, 'seconds'), (0.01, 'money'))
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is not None and match[2]:
        with suppress(ConfigError):
            found = budget(f"{match[1]} {match[2]}/s")
            return float(found), found.unit
    raise ConfigError(f"{text!r} is no cost with its unit.", hint='Write it like "200 kB" or "0.5 s".')


def show_budget(given: float, unit: str = "") -> str:
    """A budget for people.

    >>> show_budget(budget("100/min")), show_budget(budget("200 ms/s")), show_budget(budget("5 MB/s"))
    ('1.67/s', '0.2 s/s', '4.77 MiB/s')
    """
    unit = unit or getattr(given, "unit", "calls")
    if unit == "seconds":
        return f"{_short(given)} s/s"
    if unit == "bytes":
        return f"{show_size(given)}/s"
    return show_rate(given) if unit == "calls" else f"{_short(given * SECONDS['d'])} a day"


def show_cost(cost: float, unit: str) -> str:
    """What something cost, for people.

    >>> show_cost(0.012, "seconds"), show_cost(2048, "bytes"), show_cost(1.0, "calls")
    ('12 ms', '2 KiB', '1 call')
    """
    if unit == "seconds":
        return show_duration(cost)
    return show_size(cost) if unit == "bytes" else f"{cost:.3g} {'call' if cost == 1 else unit}"


def size(text: str | float) -> int:
    """Bytes from text such as "64MiB", "1.5 GB" or "4096"; a plain number is taken as bytes.

    >>> size("64MiB"), size("1 kB"), size(10)
    (67108864, 1000, 10)
    """
    match = _QUANTITY.fullmatch(str(text))
    spellings = {name.lower(): count for name, count in BYTES.items()}
    count = spellings.get(match[2].lower()) if match else None
    if match is None or count is None:
        raise ConfigError(f"{text!r} is not a size.", hint='Write it like "500kB", "64MiB" or "2GB".')
    return int(_finite(float(match[1]) * count, str(text)))


def _short(value: float) -> str:
    """Three figures, and never an exponent."""
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"


def show_duration(seconds: float) -> str:
    """A duration for people, in the largest unit that leaves a number of at least one.

    >>> show_duration(5400), show_duration(0.25), show_duration(86400 * 3), show_duration(float("inf"))
    ('1.5 h', '250 ms', '3 d', 'never')
    """
    if math.isinf(seconds):
        return "never"
    for name in ("y", "d", "h", "min", "s"):
        if abs(seconds) >= SECONDS[name]:
            return f"{_short(seconds / SECONDS[name])} {name}"
    return f"{_short(seconds * 1000)} ms"


def show_rate(per_second: float) -> str:
    """A rate for people, per the shortest unit that leaves a number of at least one.

    >>> show_rate(2.0), show_rate(3 / 3600), show_rate(0), show_rate(1 / 86400 / 90)
    ('2/s', '3/h', '0/s', '4.06/y')
    """
    if per_second <= 0:
        return "0/s"
    for name in ("s", "min", "h", "d"):
        if per_second * SECONDS[name] >= 1:
            return f"{_short(per_second * SECONDS[name])}/{name}"
    return f"{_short(per_second * SECONDS['y'])}/y"


def show_count(number: float, one: str, several: str = "") -> str:
    """How many there are of something.

    >>> show_count(1, "page"), show_count(1200, "page"), show_count(0, "copy", "copies")
    ('1 page', '1,200 pages', '0 copies')
    """
    return f"{number:,.0f} {one if number == 1 else several or one + 's'}"


def show_size(count: float) -> str:
    """A size for people.

    >>> show_size(67108864), show_size(10)
    ('64 MiB', '10 B')
    """
    for name in ("TiB", "GiB", "MiB", "KiB"):
        if count >= BYTES[name]:
            return f"{_short(count / BYTES[name])} {name}"
    return f"{count:.0f} B"


def _whole(value: float) -> bool:
    return value >= 1 and abs(value - round(value)) < 1e-9 * value


def write_duration(seconds: float) -> str:
    """A duration as settings have it, exactly.

    >>> write_duration(20.0), write_duration(5400), write_duration(0.25), write_duration(86400), write_duration(1.5)
    ('20s', '90min', '250ms', '1d', '1.5s')
    """
    for name in ("d", "h", "min", "s") if seconds >= 1 else ("ms",):
        if _whole(seconds / SECONDS[name]):
            return f"{seconds / SECONDS[name]:.0f}{name}"
    return f"{seconds:.12g}s"


def write_rate(per_second: float) -> str:
    """A rate as settings have it, exactly.

    >>> write_rate(10.0), write_rate(100 / 60), write_rate(5000 / 86400), write_rate(0.0)
    ('10/s', '100/min', '5000/day', '0/s')
    """
    for name in ("s", "min", "h", "day"):
        if _whole(per_second * SECONDS[name]):
            return f"{per_second * SECONDS[name]:.0f}/{name}"
    return f"{per_second:.12g}/s"


def write_size(count: int) -> str:
    """A size as settings have it, exactly.

    >>> write_size(16 << 20), write_size(5_000_000), write_size(0), write_size(1_000_001)
    ('16MiB', '5MB', '0B', '1000001B')
    """
    names = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB")
    name = next((name for name in names if count and count % BYTES[name] == 0), "B")
    return f"{count // BYTES[name]}{name}"


def write_budget(given: Budget) -> str:
    """A budget as settings have it, exactly; except that of money nobody knows any more which it was.

    >>> write_budget(budget("100/min")), write_budget(budget("12 min/h")), write_budget(budget("5 MB/s"))
    ('100/min', '0.2 s/s', '5MB/s')
    """
    if given.unit == "bytes" and given.is_integer():
        return f"{write_size(int(given))}/s"
    words = {"seconds": f"{float(given):.12g} s/s", "bytes": f"{float(given):.12g} B/s"}
    return write_rate(given) if given.unit == "calls" else words.get(given.unit) or show_budget(given)


def importance(text: str | float) -> Importance:
    """What an operator wants a page to be worth: requests per second, or "x2", twice what is learned.

    >>> importance("2"), importance("x2")
    (Importance(value=2.0, times=False), Importance(value=2.0, times=True))
    """
    match = _IMPORTANCE.fullmatch(str(text))
    value = float(match[2]) if match else math.inf
    times = match is not None and bool(match[1])
    if not value <= MOST_IMPORTANT or (times and value == 0):
        raise ConfigError(
            f"{str(text)[:80]!r} is not an importance.",
            hint=f'Give requests per second, from 0 to {MOST_IMPORTANT:g}, or a factor on what is learned: "x5".',
        )
    return Importance(value, times)


def show_importance(given: Importance) -> str:
    """An importance as it is written.

    >>> show_importance(Importance(2.0)), show_importance(Importance(2.0, times=True))
    ('2', 'x2')
    """
    return f"{'x' if given.times else ''}{given.value:g}"


def as_json(value: Any) -> str:
    """One line of strict JSON; infinities become null."""
    return json.dumps(_strict(value), ensure_ascii=True, allow_nan=False)


def _strict(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _strict(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
