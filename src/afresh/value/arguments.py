"""Arguments of the maths functions: numbers or arrays, checked at no extra pass over them.

The compiled functions answer NaN for arguments that make no sense, so only a NaN among the answers makes us look for
the argument to blame.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import ConfigError

Floats = NDArray[np.float64]

# Largest allowed value of an argument; all are at least 0. The time since the last crawl may be infinite (no copy).
_MOST = {"recall": 1.0, "elapsed": math.inf, "signals": math.inf, "shape": math.inf}


def numbers(name: str, given: Any) -> Floats:
    """What is given as an array of numbers; ConfigError if it is something else."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(
            f"{name} must be numbers, not {given!r:.60}.", hint='Rates are per second: afresh.units.rate("2/s") is 2.0.'
        ) from None


def blame(named: dict[str, Any]) -> None:
    """Raise a ValueError that names the first argument that is not a number of its range, if there is one."""
    for name, given in named.items():
        values = numbers(name, given)
        most = _MOST.get(name, math.nan)
        good = (values >= 0) & (np.isfinite(values) if math.isnan(most) else values <= most)
        if not good.all():
            bad = float(values[~good].flat[0]) if values.ndim else float(values)
            wanted = "at least 0" + (
                " and finite" if math.isnan(most) else f" and at most {most:g}" if most == 1 else ""
            )
            raise ValueError(f"{name} must be {wanted}, but is {bad}")


def evaluate(function: Callable[..., Any], named: dict[str, ArrayLike]) -> Any:
    """The function of the arguments in their order: floats in, float out; arrays in, array out."""
    values = [numbers(name, given) for name, given in named.items()]
    # The compiled functions pass through 1/0 = inf where a limit wants it.
    with np.errstate(all="ignore"):
        answer = function(*values)
    if np.isnan(answer).any():
        blame(named)
        names = ", ".join(named)
        raise ValueError(f"{names} must be of a size that can be reckoned with together")
    return float(answer) if np.ndim(answer) == 0 else answer
