"""What a caller of the library hands in, checked where it comes in: one sentence, not an error from far inside."""

import math
from typing import Any

from afresh.errors import ConfigError

MAX_MOMENT = 1e12  # seconds from the start of the clock, either way: 30,000 years
MAX_SENDER = 100  # characters
# Who hears for itself, and validators, which are graded like senders: nobody else may speak in these names.
OUR_SENDERS = frozenset({"sitemap", "sitemap-gone", "feed", "websub", "indexnow", "etag", "last-modified"})


def number(
    name: str,
    value: Any,
    *,
    least: float = 0.0,
    above: bool = False,
    most: float = math.inf,
    infinite: bool = False,
) -> float:
    """The value, if it is a number of at least `least`, or `above` it, and at most `most`; finite unless `infinite`.

    >>> number("budget", 2)
    2.0
    >>> number("budget", "2/s")
    Traceback (most recent call last):
    ...
    afresh.errors.ConfigError: budget must be a number, not '2/s'. Rates are per second: units.rate("2/s") is 2.0.
    """
    if type(value) is float and least < value < most:
        return value  # nearly always
    if isinstance(value, str):
        of_time = any(each.isdigit() for each in value)
        hint = 'Rates are per second: units.rate("2/s") is 2.0.' if of_time else "Write it without quotes."
        raise ConfigError(f"{name} must be a number, not {value[:40]!r}.", hint=hint)
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not (found > least if above else found >= least) or found > most or (found == math.inf and not infinite):
        wanted = "" if least == -math.inf else f" of {'more than' if above else 'at least'} {least:g}"
        if most < math.inf:
            wanted += f" {'and' if wanted else 'of'} at most {most:g}"
        kind = "number" if infinite else "finite number"
        raise ConfigError(f"{name} must be a {kind}{wanted}, not {value!r:.40}.", hint="Check where it is from.")
    return found


def moment(name: str, value: Any) -> float:
    """The value, if it is a moment in seconds that a clock may show.

    >>> moment("now", 1e300)
    Traceback (most recent call last):
    ...
    afresh.errors.ConfigError: now must be a moment in seconds, not 1e+300. Give time.time(), or your own clock's.
    """
    if type(value) is float and -MAX_MOMENT <= value <= MAX_MOMENT:
        return value  # nearly always
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_MOMENT <= value <= MAX_MOMENT:
        raise ConfigError(
            f"{name} must be a moment in seconds, not {value!r:.40}.", hint="Give time.time(), or your own clock's."
        )
    return float(value)


def whole(name: str, value: Any, *, least: int = 0, most: int = 2**53) -> int:
    """The value, if it is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(
            f"{name} must be a whole number of at least {least}, not {value!r:.40}.", hint="Check where it is from."
        )
    return value


def later(now: Any, before: float) -> float:
    """The moment, if it is a number and no earlier than the one before."""
    found = moment("now", now)
    if found < before:
        raise ConfigError(
            f"now went backwards, from {before!r} to {now!r}.",
            hint="Give moments of one clock that never steps back, such as afresh.daemon.SteadyClock().",
        )
    return found


def require(value: Any, name: str, methods: tuple[str, ...], example: str) -> None:
    """ConfigError if a part lacks methods that it is used by."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise ConfigError(f"{name} must be such as {example}, not {value!r:.80}.", hint=f"It lacks {missing[0]}().")


def foreign_sender(value: Any) -> str:
    """The name of a sender, if one from outside may have it.

    >>> foreign_sender("ETag")
    Traceback (most recent call last):
    ...
    afresh.errors.ConfigError: 'ETag' is no name for a sender: it is one of afresh's own. Use another name.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SENDER or not value.isprintable():
        raise ConfigError(
            f"{value!r:.40} is no name for a sender.", hint=f"Give a text of up to {MAX_SENDER} printable characters."
        )
    if value.strip().lower() in OUR_SENDERS:
        raise ConfigError(f"{value!r} is no name for a sender: it is one of afresh's own.", hint="Use another name.")
    return value


def require_text(value: Any, name: str) -> None:
    """ConfigError if an argument is not a text."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be a text, not {value!r:.80}.", hint="Write it in quotes.")


def require_kinds(*given: tuple[Any, type | tuple[type, ...], str]) -> None:
    """ConfigError if one of the arguments, each with its kind and name, is of another kind."""
    for value, kind, name in given:
        if not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(each.__name__ for each in kinds)
            raise ConfigError(
                f"{name} must be a {wanted}, not {value!r:.80}.",
                hint=f"Make one: from afresh import {kinds[0].__name__}.",
            )
