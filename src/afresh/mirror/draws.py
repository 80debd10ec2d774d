"""Numbers that look random and follow from their place: the same play is drawn alike however often it is asked for."""

from typing import Any

import numpy as np

from afresh.value.compiled import compiled

_ARM, _NTH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_THIRTY, _TWENTY_SEVEN, _THIRTY_ONE, _ELEVEN = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


def mixed(seed: Any, arm: Any, nth: Any) -> Any:
    """From 0 (included) to 1 (excluded), uniform over all arms and their n-th intervals; unsigned whole numbers in."""
    z = seed + arm * _ARM + nth * _NTH
    z = (z ^ (z >> _THIRTY)) * _FIRST
    z = (z ^ (z >> _TWENTY_SEVEN)) * _SECOND
    z = z ^ (z >> _THIRTY_ONE)
    return (z >> _ELEVEN) * _UNIT


draw = compiled(mixed)
