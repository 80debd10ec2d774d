"""What every duplicate eliminator must do, whatever it keeps its fingerprints in."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from afresh.frontier.base import Eliminator
from afresh.testing.store_model import require

TOP = (1 << 64) - 1
EDGES = [0, 1, TOP, TOP - 1, 1 << 63, (1 << 63) - 1, 1 << 40, (1 << 40) - 1, 1 << 48, 255, 65535]


def check_seen(make: Callable[[], Eliminator], *, rounds: int = 40, largest: int = 3_000) -> None:
    """Play random batches to an eliminator and to a plain set, and compare every answer.

    `make` gives a new, empty one each time.
    """
    _check_plain_cases(make())
    for rng in (np.random.default_rng(seed) for seed in range(3)):
        seen, known = make(), set[int]()
        for _ in range(rounds):
            batch = _batch(rng, known, int(rng.integers(0, largest)))
            _compare(seen, known, batch)
        require(len(seen) == len(known), f"it counts {len(seen)} where {len(known)} were shown")
        everything = np.fromiter(known, np.uint64, len(known))
        require(not seen.add_many(everything).any(), "something shown before is called new")


def _check_plain_cases(seen: Eliminator) -> None:
    require(seen.add_many(np.empty(0, np.uint64)).tolist() == [], "an empty batch has an empty answer")
    require(len(seen) == 0, "a new one is not empty")
    edges = np.array(EDGES * 2, np.uint64)
    first = [True] * len(EDGES) + [False] * len(EDGES)
    require(seen.add_many(edges).tolist() == first, "a repetition within a batch counts once")
    require(not seen.add_many(edges).any(), "something shown before is called new")


def _batch(rng: np.random.Generator, known: set[int], size: int) -> NDArray[np.uint64]:
    """Fingerprints of all sorts: spread, close together, repeated, known and at the edges."""
    kind = rng.integers(0, 4)
    if kind == 0:
        made = rng.integers(0, TOP, size, np.uint64, endpoint=True)
    elif kind == 1:
        made = rng.integers(0, 5_000, size).astype(np.uint64)
    elif kind == 2:
        made = np.uint64(rng.integers(0, 1 << 60)) + np.arange(size, dtype=np.uint64)
    else:
        made = np.array(EDGES, np.uint64)[rng.integers(0, len(EDGES), size)]
    old = np.fromiter(known, np.uint64, len(known))[: size // 2]
    batch = np.concatenate([made, old])
    rng.shuffle(batch)
    return batch


def _compare(seen: Eliminator, known: set[int], batch: NDArray[np.uint64]) -> None:
    looked, again = seen.look(batch), seen.look(batch)
    require(bool((looked == again).all()), "looking has changed something")
    expected = []
    for fingerprint in batch.tolist():
        expected.append(fingerprint not in known)
        known.add(fingerprint)
    if len(batch) % 2:
        answer = seen.add_many(batch)
    else:  # the same in two steps
        answer = seen.look(batch)
        seen.keep(batch[answer])
    require(bool((answer == looked).all()), "it looks otherwise than it adds")
    require(answer.dtype == np.bool_, f"the answer is of {answer.dtype}")
    wrong = np.flatnonzero(answer != np.array(expected, np.bool_))
    require(not len(wrong), f"of {len(batch)} answers {len(wrong)} are wrong, the first for {batch[wrong[:1]]}")
