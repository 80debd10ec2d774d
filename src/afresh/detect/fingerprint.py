"""Marks of a content, 64 bits each: exact ones, and a fuzzy one that tells how far two contents differ."""

import numpy as np
import xxhash

SHINGLE = 3  # words
MOST_WORDS = 100_000  # of a page; what comes later does not move the signature
BLOCK = 4096
_BITS = np.arange(64, dtype=np.uint64)


def mark(content: bytes) -> int:
    """64 bits that are equal for equal contents; never 0, which stands for none.

    >>> mark(b"a") == mark(b"a") != mark(b"b")
    True
    """
    return xxhash.xxh3_64_intdigest(content) or 1


def signature(text: str) -> int:
    """64 bits that change little when the text changes little (simhash over runs of three words).

    >>> one = "the harbour was rebuilt after the great storm of last year and the ferry runs again " * 5
    >>> distance(signature(one), signature(one + "every day")) < 0.2
    True
    """
    words = text.split(maxsplit=MOST_WORDS)[:MOST_WORDS]
    runs = {" ".join(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1))}
    hashes = np.array([xxhash.xxh3_64_intdigest(run.encode()) for run in runs], dtype=np.uint64)
    votes = np.zeros(64, dtype=np.int64)
    for start in range(0, len(hashes), BLOCK):  # in blocks, because every hash is spread out to 64 numbers
        votes += ((hashes[start : start + BLOCK, None] >> _BITS) & np.uint64(1)).sum(axis=0, dtype=np.int64)
    # Each bit is the majority of that bit over all runs.
    bits = (2 * votes > len(hashes)).astype(np.uint64)
    return int((bits << _BITS).sum(dtype=np.uint64)) or 1


def distance(one: int, other: int) -> float:
    """How far two signatures differ: 0 the same, 1 no more alike than chance.

    >>> distance(0b1111, 0b1111), distance(0, 2**64 - 1)
    (0.0, 1.0)
    """
    return min(1.0, (one ^ other).bit_count() / 32)
