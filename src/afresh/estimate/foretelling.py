"""How much a page that is new will be asked for, in times a page alike: from where it was found, and how it is called.

What is known of it are marks: how many of the pages that were read link to it, words of its address and of the text
of the link, how much the page that links to it is asked for and how many links that has, its kind once that is told.
Each mark has a factor, and a page's factor is their product. A mark's factor is the requests of its pages beside those
that were expected of them, its own factor left out, with some requests' worth of 1: a Poisson regression, fitted one
mark at a time as pages come. Marks share 4,096 places. Factors are used while they have foretold better than none.
"""

import json
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PLACES = 4_096
MAX_MARKS = 24  # of a page
MAX_LOG = 3.0  # a factor is within e³ of 1
PRIOR = 12.0  # requests' worth of a factor of 1, in each mark
SPREAD = 4.0  # the variance of requests, in times that of chance
MAX_REQUESTS = 20.0  # of one page, that count: one that is famous must not speak for all its marks
FADE = 0.999  # what a page leaves of what its marks have seen before
SCORE_FADE = 0.998  # and of the score
PROOF = 2.0  # nats by which factors must have foretold better before they are used
MAX_NATS = 5.0  # that one page can prove

_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


def place_of(mark: str) -> int:
    """The place of a mark: the same in every process.

    >>> place_of("word tides") == place_of("word tides") != place_of("word tide")
    True
    """
    found = _OFFSET
    for byte in mark[:64].encode("utf-8", "replace"):
        found = (found ^ byte) * _PRIME & _MASK
    return (found ^ found >> 32) % PLACES


class Foretelling:
    """What marks have proved to mean.

    >>> foretelling, rng = Foretelling(), np.random.default_rng(0)
    >>> for _ in range(400):
    ...     hot = bool(rng.random() < 0.5)
    ...     foretelling.learn([place_of("hot" if hot else "cold")], float(rng.poisson(9 if hot else 1)), 5.0)
    >>> foretelling.used, foretelling.factor([place_of("hot")]) > 1.5, foretelling.factor([place_of("cold")]) < 0.5
    (True, True, True)
    """

    def __init__(self) -> None:
        self._seen: NDArray[np.float64] = np.zeros((PLACES, 2))  # requests, and those expected without the mark itself
        self.score = 0.0  # nats gained
        self.judged = 0

    @property
    def used(self) -> bool:
        """Whether factors have proved better than none."""
        return self.score > PROOF

    def factor(self, marks: Sequence[int]) -> float:
        """How much a page with these marks will be asked for, in times a page alike, as far as is known."""
        return math.exp(self._log(marks))

    def _log(self, marks: Sequence[int]) -> float:
        return min(max(math.fsum(self._logs(marks[:MAX_MARKS]).tolist()), -MAX_LOG), MAX_LOG)

    def _logs(self, marks: Sequence[int]) -> NDArray[np.float64]:
        seen = self._seen[list(marks)] + PRIOR
        return np.asarray(np.log(seen[:, 0] / seen[:, 1]))

    def learn(self, marks: Sequence[int], requests: float, expected: float) -> None:
        """A page with these marks had so many requests, where a page alike was expected to have others."""
        marks = list(dict.fromkeys(marks[:MAX_MARKS]))
        if not (marks and requests >= 0.0 and 0.0 < expected < math.inf):
            return
        requests = min(requests, MAX_REQUESTS * max(expected, 1.0))
        log = self._log(marks)
        told = expected * math.exp(log)
        gained = (requests * log - told + expected) / SPREAD
        self.score = self.score * SCORE_FADE + min(max(gained, -MAX_NATS), MAX_NATS)
        self.judged += 1
        worth = 1.0 / max(expected, 1.0)  # a page that was watched for long does not count for more
        without = told * np.exp(-self._logs(marks))
        self._seen[marks] *= FADE
        self._seen[marks, 0] += requests * worth
        self._seen[marks, 1] += without * worth

    def to_text(self) -> str:
        """All that is known, for `from_text`."""
        known = np.flatnonzero(self._seen.max(axis=1) > 0.01).tolist()
        seen = {str(place): [round(each, 3) for each in self._seen[place].tolist()] for place in known}
        return json.dumps({"score": self.score, "judged": self.judged, "seen": seen})

    @classmethod
    def from_text(cls, text: str | None) -> "Foretelling":
        """What was kept so; nothing is known if there is no text."""
        foretelling = cls()
        if text:
            kept = json.loads(text)
            foretelling.score, foretelling.judged = float(kept["score"]), int(kept["judged"])
            for place, own in kept["seen"].items():
                foretelling._seen[int(place)] = own
            sane = np.isfinite(foretelling._seen).all() and foretelling._seen.min() >= 0.0
            if not (math.isfinite(foretelling.score) and sane):
                raise ValueError("no counts of marks")
        return foretelling
