"""Where sources turn to: what the loop lets them know, and what they tell it of their own accord."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from math import inf

from afresh.daemon.grading import Grading
from afresh.daemon.heard import MUTED, NO_COPY, OLD, REPEATED, TAKEN
from afresh.daemon.keeping import Keeper
from afresh.daemon.pressure import Pressure
from afresh.engine import AnyEngine
from afresh.frontier import Lanes
from afresh.sources import Listed
from afresh.types import Page, Signal

MAX_HINTED = 100_000  # things and senders that are remembered; the longest ago are forgotten first
USUAL_OF = 100.0  # things
LEAST_TRUST = 0.01  # in a hint, so that nobody is forgotten for good


class Hinted:
    """When whom was last heard of which thing, so that one hint of each sender counts until the next crawl."""

    def __init__(self) -> None:
        self._at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def since(self, key: str, sender: str, current: float) -> bool:
        """Whether a sender was heard since the copy was current."""
        return self._at.get((key, sender), -inf) >= current

    def note(self, key: str, sender: str, now: float) -> None:
        """A sender was heard."""
        self._at.pop((key, sender), None)
        self._at[key, sender] = now
        if len(self._at) > MAX_HINTED:
            self._at.popitem(last=False)


class Desk:
    """A `sources.Runner`."""

    def __init__(
        self,
        *,
        engine: AnyEngine,
        keeper: Keeper,
        pressure: Pressure,
        clock: Callable[[], float],
        tell: Callable[[Listed], None],
        promised: Callable[[AnyEngine, str, float], None],
        grading: Grading,
    ) -> None:
        self._engine, self._keeper, self._pressure = engine, keeper, pressure
        self._clock, self._tell, self._promised, self._grading = clock, tell, promised, grading
        self._hinted = Hinted()
        self._usual_rate = 1.0  # of requests of a thing, on average over the latest that were asked about

    @property
    def lanes(self) -> Lanes:
        """All that is known of lanes."""
        return self._engine.lanes

    def clock(self) -> float:
        """The runner's own clock."""
        return self._clock()

    def hint(self, key: str, sender: str, changed: float | None = None, *, deaf_since: float | None = None) -> bool:
        """Hear of a change; if its moment is said, only what is newer than the copy, and once until the next crawl."""
        if key not in self._engine:
            return False
        now, current = self.clock(), self._engine.current(key)
        moment, says_when = (now, False) if changed is None else (min(changed, now), True)
        self._grading.hear(key, sender, moment, says_when=says_when, deaf_since=deaf_since)
        became = self._became(key, sender, changed, current)
        self._grading.heard.note(key, sender, now, became)
        if became is not TAKEN:
            return False
        self._keeper.hinted(key)
        if changed is not None:
            self._hinted.note(key, sender, now)
        return self._engine.observe(Signal(key, now, sender))

    def unread(self, lane: str) -> Sequence[str]:
        """Things of a lane that were crawled since lists of it were read."""
        return self._grading.grades.waiting(lane)

    def read(self, lane: str, sender: str, until: float, keys: Iterable[str]) -> None:
        """From now on also the silence of a sender's lists counts, until that moment."""
        self._grading.grades.read(lane, sender, until, keys)

    def _became(self, key: str, sender: str, changed: float | None, current: float | None) -> str:
        if changed is not None:
            if current is None:
                return NO_COPY
            if changed <= current:
                return OLD
            if self._hinted.since(key, sender, current):
                return REPEATED
        return MUTED if self._grading.is_muted(key, sender) else TAKEN

    def repeated(self, key: str, sender: str) -> None:
        """A hint of a sender was dropped by its receiver: it counts once until the next crawl."""
        self._grading.heard.note(key, sender, self.clock(), REPEATED)

    def lasts(self, key: str, lifetime: float) -> None:
        """What is said to last so long, as a rule; only of things that have no copy yet."""
        if key in self._engine and self._engine.current(key) is None:
            self._promised(self._engine, key, lifetime)

    def looks_again(self, key: str) -> None:
        """What is put off, because it failed, is tried again."""
        self._engine.looks_again(key, self.clock())

    def keeps(self, key: str) -> bool:
        """Whether a copy of this is to be kept."""
        return key in self._engine

    def pages_of(self, lane: str) -> Iterable[str]:
        """From the store: names are not in memory."""
        return [state.page.url for state in self._keeper.store.states_of_host(lane)]

    def worth(self, key: str, sender: str) -> float:
        """The request rate of a thing, as far as a hint of it is right."""
        engine = self._engine
        if key not in engine:
            return self._usual_rate
        rate = engine.beliefs(key, self.clock()).request_rate
        self._usual_rate += (rate - self._usual_rate) / USUAL_OF
        return rate * max(self._grading.grades.precision(sender, engine.host_of(key)), LEAST_TRUST)

    @property
    def price(self) -> float:
        """The price of a crawl."""
        return self._engine.first.scheduler.price

    @property
    def budget(self) -> float:
        """As it is at this hour."""
        return self._engine.first.scheduler.budget

    @property
    def takes_more(self) -> bool:
        """Whether the store has room for new pages."""
        return self._keeper.room.for_new_pages

    def found(self, pages: Sequence[Page]) -> None:
        """New things compete at once."""
        self._keeper.welcome(pages)

    def tell(self, event: Listed) -> None:
        """To all listeners."""
        self._tell(event)

    def hold(self, size: int) -> None:
        """Counts as what is fetched and not yet durable."""
        if size >= 0:
            self._pressure.hold(size)
        else:
            self._pressure.release(-size)

    @property
    def compete(self) -> bool:
        """Whether there are pages of more than one site."""
        return self._keeper.newcomers.compete
