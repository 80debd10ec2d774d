"""What is known of pages that change together, as text: it is kept in the store over a restart."""

import json
import math
import zlib
from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.activity import (
    LEVELS,
    MOST_ODDS,
    MOST_TONE,
    SLICES,
    SLICES_PER_ROUND,
    Activity,
    Floats,
    Integers,
)

MOST_KEPT = 2_048  # branches, of some hundred bytes each
TOO_WIDE = 4.0  # times: slices that were kept are not used where they should be so much shorter now


def to_text(activity: Activity) -> str:
    """What is known about hosts and about their best known folders, for `from_text`."""
    names = activity.names
    chosen = _best_known(activity, len(names))
    slices = np.stack([activity.found[chosen], activity.expected[chosen]])
    levels = np.stack([getattr(activity, name)[chosen] for name in LEVELS])
    return json.dumps(
        {
            "width": activity.width,
            "names": [names[number] for number in chosen.tolist()],
            "newest": activity.newest[chosen].tolist(),
            "levels": _packed(levels, "<f8"),
            "slices": _packed(slices, "<f4"),
        }
    )


def _best_known(activity: Activity, count: int) -> Integers:
    """The branches to keep: hosts first, without which nothing is known of their folders; nothing out of date."""
    newest, host = activity.newest[:count], activity.tone_known[:count]
    current = newest > newest.max(initial=0) - SLICES
    known = activity.expected[:count].sum(axis=1) * current
    order = np.lexsort((-known, -host))[:MOST_KEPT]
    return np.sort(order[(host + known)[order] > 0.0])


def from_text(text: str | None, *, width: float, now: float) -> Activity:
    """What `to_text` wrote; nothing known if there is nothing, or nothing that can be read.

    `width` is the length that slices should have now: where those that were kept are far too long, only how much pages
    change together is taken from them. Slices later than `now` were kept by a clock that was wrong.
    """
    made = Activity(width=width)
    try:
        found = json.loads(text or "")
        names, then = [str(name) for name in found["names"][:MOST_KEPT]], float(found["width"])
        newest = np.array(found["newest"], np.int64)
        levels = _levels(found["levels"], len(names))
        slices = _unpacked(found["slices"], "<f4", (2, len(names), SLICES))
        if newest.shape != (len(names),) or not (0 < then < math.inf and (slices >= 0.0).all()):
            return made
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error):
        return made
    rows = [made.branches((name,))[0] for name in names]
    for name, values in zip(LEVELS, levels, strict=True):
        getattr(made, name)[rows] = values
    np.clip(made.odds, -MOST_ODDS, MOST_ODDS, out=made.odds)
    np.clip(made.folder_odds, -MOST_ODDS, MOST_ODDS, out=made.folder_odds)
    np.clip(made.tone, -MOST_TONE, MOST_TONE, out=made.tone)
    np.clip(made.tone_known, 0.0, None, out=made.tone_known)
    np.clip(made.usual, 0.0, 1.0, out=made.usual)
    if then <= TOO_WIDE * width:
        newest = _forget_later(slices, newest, math.floor(now / then))
        made.width, made.newest[rows] = then, newest
        made.found[rows], made.expected[rows] = slices
        made.follow(width * SLICES_PER_ROUND)
    return made


def _levels(text: str, names: int) -> Floats:
    """What is known of hosts as wholes; what was kept before folders were doubted lacks the last of it."""
    try:
        return _unpacked(text, "<f8", (len(LEVELS), names))
    except ValueError:
        return np.concatenate([_unpacked(text, "<f8", (len(LEVELS) - 1, names)), np.zeros((1, names))])


def _forget_later(slices: Floats, newest: Integers, last: int) -> Integers:
    """Empty the slices after the last one that there can be; the newest ones that are left."""
    held = newest[:, None] - np.arange(SLICES)
    rows, nth = np.nonzero(held > last)
    slices[:, rows, held[rows, nth] % SLICES] = 0.0
    return np.minimum(newest, last)


def _packed(numbers: Floats, kind: str) -> str:
    return b64encode(zlib.compress(numbers.astype(kind).tobytes(), 1)).decode("ascii")


def _unpacked(text: str, kind: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """What `_packed` made of this many numbers; ValueError if it was anything else."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    raw = zlib.decompressobj().decompress(b64decode(text, validate=True), size + 1)
    if len(raw) != size:
        raise ValueError(f"{len(raw)} bytes are not {size}")
    numbers = np.frombuffer(raw, kind).astype(np.float64).reshape(shape)
    if not np.isfinite(numbers).all():
        raise ValueError("there are numbers that are none")
    return numbers
