"""What differs at nearly every fetch while the rest of the page stays: clocks, counters, advertisements, tokens.

Nobody can tell by a single look whether a text is news or noise. What tells them apart is habit, so for every spot that
differed it is remembered how often it was looked at and how often it differed, for a page and for the pages of a host.
A spot is noise when all of this holds:

- it differed at nearly every recent comparison (`ON`), and there were several (`MIN_VISITS`); less is enough where the
  same few texts take turns, as advertisements do (`ROTATING_ON`);
- all that stands there differed each time: of a list of headlines most stay when one is added;
- often nothing else differed but spots like it: a page whose text changes with its top line is news;
- it is a small part of the page (`MAX_SHARE`): where half of a page differs each time, that is what the page is for;
- and there is a sign that it is not merely a page that is looked at too seldom: it differed soon, several
  times (`MIN_SOON`), or its number grew or fell each time as that of a clock does, or its text is of a kind that
  machines write (`detect.kinds`), or an earlier text came back, or it does so on several pages of the host, or it has
  gone on for long.

Where nothing but words with digits differ, only that is noise: if another word of the block changes, that is heard.
What stops to differ is heard again (`OFF`).
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from afresh.detect.difference import TEXT, Difference, Spot
from afresh.detect.kinds import is_of_machine

FADING = 0.875  # what a comparison counts for when the next one comes: about the last eight count
ON, OFF = 0.7, 0.5  # share of comparisons at which a spot differed: where noise begins, and where it ends
ROTATING_ON, ROTATING_OFF = 0.5, 0.3  # the same where earlier texts came back at least twice
MIN_VISITS = 4  # comparisons, of a page
MIN_HOST_VISITS, MIN_PAGES = 6, 3  # comparisons of the pages of a host, and how many pages
MANY_VISITS = 8  # comparisons after which no further sign is needed
ALONE = 1 / 3  # of the comparisons at which it differed, share at which nothing else did but its like
MAX_SHARE = 0.25  # of the text of a page that may be noise
MIN_GREW = 4  # times in a row that the number of a clock or counter grew, the first look included
SOON, SELDOM = 3600.0, 86_400.0  # seconds between two looks: differing within an hour tells most, from a day on least
MIN_SOON = 3.0  # times that it must have differed within the hour; from a day on, a look counts for `LEAST_SOON`
LEAST_SOON = MIN_SOON / MANY_VISITS
MAX_HABITS = 16  # spots that are remembered of a page, and as many of a host
MAX_RECENT = 6  # texts of a spot that are remembered by their marks


@dataclass(slots=True)
class Habit:
    """How one spot has behaved; counts fade with every comparison."""

    sort: str
    place: str  # for people
    sample: str
    visits: int = 0  # comparisons of pages on which it stood; does not fade
    seen: float = 0.0
    differed: float = 0.0
    alone: float = 0.0  # times at which it differed and nothing else did but its like
    soon: float = 0.0  # times at which it differed, each counting by how soon it did (`_telling`)
    number: int = 0  # of the latest text
    grew: int = 0  # times in a row that it was larger than before; below 0, that it was smaller
    back: int = 0  # times at which an earlier text came back
    recent: list[int] = field(default_factory=list)  # marks of the latest texts
    pages: list[int] = field(default_factory=list)  # marks of pages where it differed, up to `MIN_PAGES`
    since: float | None = None  # it has been noise since then

    @property
    def rate(self) -> float:
        """Share of comparisons at which it differed, the latest counting most."""
        return self.differed / self.seen if self.seen else 0.0


class Habits:
    """The spots that are remembered of one page, or of one host; bounded in number and size."""

    def __init__(self, spots: dict[int, Habit] | None = None) -> None:
        self.spots = spots or {}

    def __bool__(self) -> bool:
        return bool(self.spots)

    @property
    def noise(self) -> frozenset[int]:
        """The keys of what counts as noise."""
        return frozenset(key for key, habit in self.spots.items() if habit.since is not None)

    def rested(self, now: float) -> None:
        """The page was the same byte for byte, so that nothing on it differed."""
        for habit in self.spots.values():
            _look(habit, False)
            habit.alone *= FADING
            _settle(habit, now)

    def learn(self, found: Difference, now: float, elapsed: float | None = None) -> None:
        """Take a comparison of the page in; `elapsed` since the earlier reading."""
        spots, whole = _spots(found)
        for key, spot in whole.items():
            if key not in self.spots and self._make_room():
                self.spots[key] = Habit(spot.sort, spot.place, spot.sample)
        there = [key for key in self.spots if key in found.present or key in spots]
        for key in there:
            if key in whole:
                _note(self.spots[key], whole[key], elapsed)
            _look(self.spots[key], key in whole)
        like = {key for key in whole if key in self.spots and self.spots[key].rate >= OFF}
        for key in there:
            habit = self.spots[key]
            alone = key in whole and spots.keys() - {key} <= like
            habit.alone = habit.alone * FADING + alone
            _settle(habit, now, small=_is_small(spots.get(key), found))

    def learn_from(self, page: "Habits", found: Difference | None, now: float, name: int) -> None:
        """Take a comparison in as that of one page of a host; `found` is None where every byte was the same.

        A page counts from the second time on that a spot is looked at there. Were the first counted, at which it was
        found because it differed, then what differs now and then on each of a thousand pages would seem to differ
        always.
        """
        spots, whole = _spots(found)
        for key, known in page.spots.items():
            there = found is None or key in spots or key in found.present
            if known.visits < 2 or not there or not (key in self.spots or self._make_room()):
                continue
            habit = self.spots.setdefault(key, Habit(known.sort, known.place, known.sample))
            habit.place, habit.sample = known.place, known.sample
            _look(habit, key in whole)
            habit.alone = habit.alone * FADING + (key in whole and known.alone >= ALONE * known.differed)
            if key in whole and name not in habit.pages and len(habit.pages) < MIN_PAGES:
                habit.pages.append(name)
            _settle(habit, now, small=_is_small(spots.get(key), found), of_host=True)

    def _make_room(self) -> bool:
        """Forget the spot that differs least often, if there are too many; False if all of them are noise."""
        if len(self.spots) < MAX_HABITS:
            return True
        key = min(self.spots, key=lambda each: (self.spots[each].since is not None, self.spots[each].rate))
        if self.spots[key].since is not None:
            return False
        del self.spots[key]
        return True

    def to_text(self) -> str:
        """All of it, as JSON; "" for none."""
        if not self.spots:
            return ""
        rows = [{"key": key} | asdict(habit) for key, habit in self.spots.items()]
        return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str | None) -> "Habits":
        """What `to_text` made; nothing if it cannot be read, because it is learned again.

        >>> Habits.from_text("[7").spots
        {}
        """
        try:
            rows = json.loads(text) if text else []
            return cls({row.pop("key"): Habit(**row) for row in rows[:MAX_HABITS]})
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()


def _spots(found: Difference | None) -> tuple[dict[int, Spot], dict[int, Spot]]:
    """The spots that differ, and those among them at which nothing is as it was; none where there are too many."""
    spots = (found.spots if found is not None else None) or {}
    return spots, {key: spot for key, spot in spots.items() if spot.whole}


def _is_small(spot: Spot | None, found: Difference | None) -> bool:
    return spot is None or found is None or spot.weight <= MAX_SHARE * found.total


def _note(habit: Habit, spot: Spot, elapsed: float | None) -> None:
    """What a spot looked like when it differed."""
    habit.sample, habit.place = spot.sample, spot.place
    habit.soon += _telling(elapsed)
    habit.grew = _run(habit.grew, spot.number - habit.number)
    habit.number = spot.number
    habit.back += spot.mark in habit.recent
    earlier = habit.recent or [spot.was]
    habit.recent = [*(each for each in earlier if each != spot.mark), spot.mark][-MAX_RECENT:]


def _telling(elapsed: float | None) -> float:
    """How much it tells that a spot differed so long after the look before: what is news seldom comes so soon.

    >>> [round(_telling(hours * 3600.0), 2) for hours in (0.1, 1, 5, 24, 100)]
    [1.0, 1.0, 0.68, 0.38, 0.38]
    """
    if elapsed is None:
        return LEAST_SOON
    late = math.log(max(elapsed, SOON) / SOON) / math.log(SELDOM / SOON)
    return 1.0 - (1.0 - LEAST_SOON) * min(late, 1.0)


def _run(before: int, by: int) -> int:
    """How often in a row a number grew (or, below 0, shrank), now that it has changed by so much."""
    if by == 0:
        return 0
    return max(before, 0) + 1 if by > 0 else min(before, 0) - 1


def _look(habit: Habit, differs: bool) -> None:
    habit.seen = habit.seen * FADING + 1.0
    habit.differed = habit.differed * FADING + differs
    habit.visits += 1


def _settle(habit: Habit, now: float, *, small: bool = True, of_host: bool = False) -> None:
    """Whether it is noise from now on, or is not any more."""
    rotates = habit.sort == TEXT and habit.back >= 2
    if habit.since is not None:
        if habit.rate < (ROTATING_OFF if rotates else OFF) or not small:
            habit.since, habit.visits, habit.soon, habit.grew, habit.back, habit.pages = None, 0, 0.0, 0, 0, []
        return
    if habit.rate < (ROTATING_ON if rotates else ON) or habit.alone < ALONE * habit.differed or not small:
        return
    if of_host:
        shown = habit.visits >= MIN_HOST_VISITS and len(habit.pages) >= MIN_PAGES
    else:
        sign = habit.back > 0 if habit.sort == TEXT else abs(habit.grew) >= MIN_GREW or is_of_machine(habit.sample)
        sign = sign or habit.soon >= MIN_SOON or habit.visits >= MANY_VISITS
        shown = habit.visits >= MIN_VISITS and sign
    if shown:
        habit.since = now


def ignored(found: Difference, *known: Iterable[int]) -> frozenset[int]:
    """The spots that are noise and are left out of account; none if they are too much of the page."""
    noise = frozenset[int]().union(*known)
    spots = found.spots or {}
    mine = frozenset(key for key, spot in spots.items() if key in noise and spot.whole)
    return mine if sum(spots[key].weight for key in mine) <= MAX_SHARE * found.total else frozenset()
