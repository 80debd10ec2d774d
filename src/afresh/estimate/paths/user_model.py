"""The Bayesian network of what readers are about, evaluated exactly in numpy, with nodes for what only some can see.

    about before ──► about now ──┬──► dwell
                                 ├──► way (back, again, link, elsewhere)
                                 └──► page ──┬──► scrolled
                      way ───────────┘       ├──► mouse
                                             └──► gaze

A proxy sees requests and the time between them. A browser's own program may see how far a page was scrolled, where the
mouse is and where the eyes are: it gives them as `Evidence`. A node that is not given stays unobserved and changes
nothing. `user` is the compiled form without these three; `UserModel.of` takes over what that has learned of a site.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from afresh.errors import ConfigError
from afresh.estimate.paths.layout import (
    ABOUT,
    ABOUTS,
    AGAIN,
    BACK,
    CELLS,
    CHOSEN,
    DWELL_CLASSES,
    DWELLS,
    ELSEWHERE,
    FAMES,
    LINK,
    MOVED,
    MOVES,
    NEXT_ABOUT,
    OFFERED,
    PLACES,
    STAYED,
    UNKNOWN_DWELL,
    first_beliefs,
)

Floats = NDArray[np.float64]
TOPIC = ABOUTS.index("on a topic")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader is: the links of the page in their order, the page before, and those seen before that.

    `usual`: how probable a page is for who comes from elsewhere; `fame`: its class of how often it is asked for;
    `likeness`: of a link's text to what the reader has read, from 0 to 1, where somebody has compared them.
    """

    links: Sequence[str] = ()
    before: str | None = None
    seen: Sequence[str] = ()
    usual: Mapping[str, float] = field(default_factory=dict)
    fame: Mapping[str, int] = field(default_factory=dict)
    likeness: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of a reader at a page; None: not observed."""

    dwell: float | None = None  # seconds
    scrolled: float | None = None  # share of the page that was shown, from 0 to 1
    mouse: str | None = None  # the link that it points at
    gaze: str | None = None  # the link that is looked at


@dataclass(frozen=True, slots=True)
class Senses:
    """How far scroll, mouse and gaze tell of the link that is taken next."""

    shown: float = 0.97  # how probably a link was on the screen before it is taken
    mouse: float = 0.6  # how probably the mouse points at it
    gaze: float = 0.5  # how probably it is what is looked at
    likeness: float = 3.0  # how much more often a reader on a topic takes a link that is all alike


class UserModel:
    """The network with its parameters.

    >>> place = Place(links=["/a", "/b", "/c", "/d"], before="/", usual={"/z": 0.1})
    >>> plain = UserModel().next(place)[0]
    >>> pointed = UserModel().next(place, evidence=Evidence(mouse="/b"))[0]
    >>> plain["/a"] == plain["/b"] < pointed["/b"] > pointed["/a"]
    True
    """

    def __init__(
        self,
        *,
        next_about: Floats | None = None,
        dwells: Floats | None = None,
        moves: Floats | None = None,
        attraction: Floats | None = None,
        senses: Senses | None = None,
    ) -> None:
        first = first_beliefs()
        self.next_about = _shares(_table(first, NEXT_ABOUT, ABOUT) if next_about is None else next_about)
        self.dwells = _shares(_table(first, STAYED, DWELL_CLASSES)[:, :UNKNOWN_DWELL] if dwells is None else dwells)
        self.moves = _shares(_table(first, MOVED, len(MOVES)) if moves is None else moves)
        self.attraction = np.ones((ABOUT, CELLS)) if attraction is None else np.asarray(attraction, float)
        self.senses = senses or Senses()

    @classmethod
    def of(cls, row: Floats, senses: Senses | None = None) -> "UserModel":
        """What was learned of a site (a row of `layout.Tables.sites`)."""
        stays = _table(row, STAYED, DWELL_CLASSES)
        model = cls(
            next_about=_table(row, NEXT_ABOUT, ABOUT),
            moves=_table(row, MOVED, len(MOVES)),
            attraction=_table(row, CHOSEN, CELLS) / _table(row, OFFERED, CELLS),
            senses=senses,
        )
        model.dwells = stays[:, :UNKNOWN_DWELL] / stays.sum(axis=1, keepdims=True)
        return model

    def next(
        self, place: Place, believed: Sequence[float] | None = None, evidence: Evidence | None = None
    ) -> tuple[dict[str, float], Floats]:
        """How probable each page is to be next, and what the reader is about by all this.

        `believed`: what the reader was about at the page before.
        """
        pages, joint = self.joint(place, believed, evidence or Evidence())
        total = joint.sum()
        if not total > 0:
            raise ConfigError("Nothing that is seen of this reader is possible.", hint="Check evidence and senses.")
        by_page = joint.sum(axis=(0, 1)) / total
        return dict(zip(pages, by_page.tolist(), strict=True)), joint.sum(axis=(1, 2)) / total

    def joint(self, place: Place, believed: Sequence[float] | None, evidence: Evidence) -> tuple[list[str], Floats]:
        """Pages, and the probability of each about, way and page together with the evidence.

        Pages that are neither linked nor seen nor usual are left out, with their share.
        """
        links, seen = list(place.links), list(place.seen)
        known = [*links, *([place.before] if place.before is not None else []), *seen, *place.usual]
        pages = list(dict.fromkeys(known))
        number = {page: at for at, page in enumerate(pages)}
        chosen = np.zeros((ABOUT, len(MOVES), len(pages)))  # of a page, given about and way
        for page, usual in place.usual.items():
            chosen[:, ELSEWHERE, number[page]] = usual
        if place.before is not None:
            chosen[:, BACK, number[place.before]] = 1.0
        for page in seen:
            chosen[:, AGAIN, number[page]] += 1.0 / len(seen)
        weights = self._weights(place)
        for at, page in enumerate(links):
            chosen[:, LINK, number[page]] += weights[:, at] / weights.sum(axis=1)
        there = np.array([place.before is not None, bool(seen), bool(links), True], float)
        ways = _shares(self.moves * there)
        about = np.full(ABOUT, 1.0 / ABOUT) if believed is None else _shares(np.asarray([believed], float))[0]
        now = (about @ self.next_about) * self._stayed(evidence.dwell)
        joint = now[:, None, None] * ways[:, :, None] * chosen
        joint[:, LINK, :] *= self._sensed(place, evidence, pages)
        return pages, joint

    def _weights(self, place: Place) -> Floats:
        """How much each link draws each of what a reader may be about."""
        cells = [_place_class(at) * FAMES + place.fame.get(page, 0) for at, page in enumerate(place.links)]
        weights: Floats = self.attraction[:, cells].copy()
        alike = np.array([place.likeness.get(page, 0.0) for page in place.links])
        weights[TOPIC] *= 1.0 + (self.senses.likeness - 1.0) * alike
        return weights

    def _stayed(self, dwell: float | None) -> Floats:
        if dwell is None:
            return np.ones(ABOUT)
        found: Floats = self.dwells[:, int(np.searchsorted(DWELLS, dwell, "right"))]
        return found

    def _sensed(self, place: Place, evidence: Evidence, pages: Sequence[str]) -> Floats:
        """How much more probable what was sensed is if a link to a page is taken than if nothing is known of that."""
        factor, count = np.ones(len(pages)), len(place.links)
        for at, page in enumerate(pages):
            if page not in place.links:
                continue
            if evidence.scrolled is not None:
                factor[at] *= self._scrolled(place.links.index(page) / count, evidence.scrolled)
            for sensed, trust in ((evidence.mouse, self.senses.mouse), (evidence.gaze, self.senses.gaze)):
                if sensed in place.links and count > 1:
                    factor[at] *= count * (trust if sensed == page else (1.0 - trust) / (count - 1))
        return factor

    def _scrolled(self, where: float, scrolled: float) -> float:
        """A reader who takes the link at this place has seen it, and else may be anywhere above or below it."""
        if where <= 0.0:
            return 1.0
        shown = scrolled >= where
        return self.senses.shown / (1.0 - where) if shown else (1.0 - self.senses.shown) / where


def _place_class(at: int) -> int:
    return sum(at >= border for border in PLACES)


def _table(row: Floats, start: int, width: int) -> Floats:
    return np.asarray(row[start : start + ABOUT * width], float).reshape(ABOUT, width)


def _shares(counts: Floats) -> Floats:
    """Each row divided by its sum."""
    counts = np.asarray(counts, float)
    shares: Floats = counts / counts.sum(axis=1, keepdims=True)
    return shares
