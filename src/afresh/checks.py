"""What a caller of the library hands in, checked where it comes in: one sentence, not an error from far inside."""

import math
from typing import Any

from afresh.errors import ConfigError


def number(name: str, value: Any, *, least: float = 0.0, above: bool = False) -> float:
    """The value, if it is a finite number of at least `least`, or `above` it.

    >>> number("budget", 2)
    2.0
    >>> number("budget", "2/s")
    Traceback (most recent call last):
    ...
    afresh.errors.ConfigError: budget must be a number, not '2/s'. Rates are per second: units.rate("2/s") is 2.0.
    """
    if isinstance(value, str):
        raise ConfigError(
            f"{name} must be a number, not {value[:40]!r}.",
            hint='Rates are per second: units.rate("2/s") is 2.0.',
        )
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not (found > least if above else found >= least) or found == math.inf:
        wanted = "" if least == -math.inf else f" of {'more than' if above else 'at least'} {least:g}"
        raise ConfigError(f"{name} must be a finite number{wanted}, not {value!r:.40}.", hint="Check where it is from.")
    return found


def later(now: Any, before: float) -> float:
    """The moment, if it is a number and no earlier than the one before."""
    if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
        raise ConfigError(
            f"now must be a moment in seconds, not {now!r}.", hint="Give time.time(), or your own clock's."
        )
    if now < before:
        raise ConfigError(
            f"now went backwards, from {before!r} to {now!r}.",
            hint="Give moments of one clock that never steps back, such as afresh.daemon.SteadyClock().",
        )
    return float(now)


def require(value: Any, name: str, methods: tuple[str, ...], example: str) -> None:
    """ConfigError if a part lacks methods that it is used by."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise ConfigError(f"{name} must be such as {example}, not {value!r:.80}.", hint=f"It lacks {missing[0]}().")


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
