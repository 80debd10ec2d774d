"""What was learned of pages from costs, as text in a store: by digests of their URLs."""

import base64
import binascii
import math
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

_NEWEST = "2"  # form of the text; the first one had no number, and no samples
KEPT = np.dtype(
    [
        ("mark", "<u8"),
        ("rate", "<f4"),
        ("slope", "<f4"),
        ("cost", "<f4"),
        ("probe", "<f4"),
        ("sum", "<f4"),  # of the samples since the last update, and their number
        ("count", "<u4"),
    ]
)
_FIRST = np.dtype([("mark", "<u8"), ("rate", "<f4"), ("slope", "<f4"), ("cost", "<f4"), ("probe", "<f4")])
NOTHING = np.zeros(0, KEPT)


class Head(NamedTuple):
    """What is known of all pages together."""

    cost: float  # sum of the costs
    refreshes: float  # and their number, the older the less
    samples: float = 0.0  # since the last update
    updates: float = 0.0


def mark_of(url: str) -> int:
    """A digest of a URL, never 0; the same in every run."""
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest(), "little") or 1


def text_of(cost: str, head: Head, rows: np.ndarray) -> str:
    """One line: the name of the cost, the form, and the numbers."""
    numbers = np.array(head, "<f8").tobytes() + rows.tobytes()
    return f"{cost} {_NEWEST} {base64.b64encode(numbers).decode()}"


def cost_in(text: str) -> str:
    """The name of the cost that it was learned from."""
    return text.partition(" ")[0]


def read_learned(text: str) -> tuple[Head, np.ndarray]:
    """(all pages together, records of pages by mark) that `text_of` wrote; ValueError if it did not."""
    words = text.split(" ")
    form, size = (KEPT, 32) if words[1:2] == [_NEWEST] else (_FIRST, 16)
    try:
        data = base64.b64decode(words[-1], validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if len(data) < size or (len(data) - size) % form.itemsize:
        raise ValueError("it has another length")
    head = Head(*np.frombuffer(data[:size], "<f8").tolist())
    found = np.frombuffer(data[size:], form)
    kept = np.zeros(len(found), KEPT)
    for name in form.names or ():
        kept[name] = found[name]
    if not (all(0.0 <= each < math.inf for each in head) and _is_sound(kept)):
        raise ValueError("its numbers make no sense")
    return head, kept[np.argsort(kept["mark"], kind="stable")]


def _is_sound(kept: np.ndarray) -> bool:
    finite = np.isfinite(kept["rate"]).all() and np.isfinite(kept["sum"]).all()
    return bool(finite and (kept["rate"] > 0.0).all() and not np.isinf(kept["slope"]).any())
