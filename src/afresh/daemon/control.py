"""What an operator wants while it runs: pauses, hours, budgets of hosts and by the time of day, rules of sites.

The schedule knows pages that are paused and hosts that have a budget; this knows why, and when that changes.
"""

import asyncio
from collections.abc import Callable, Sequence

from afresh.engine import AnyEngine, Engine
from afresh.frontier import SiteRules
from afresh.hours import Hours, hours
from afresh.store import Store, understood
from afresh.store.messages import PAUSED, Pauses
from afresh.types import Page

PIECE = 200  # pages that are told of other rules between two chances for others

BudgetHours = Sequence[tuple[Hours, float]]


class Control:
    """Holds pages back and lets them go.

    Invariant: a page is paused in the schedule exactly if it is `paused` itself, its host is, or its hours are over (to
    within a second).
    """

    def __init__(
        self,
        *,
        engine: AnyEngine,
        store: Store,
        clock: Callable[[], float],
        budget_hours: BudgetHours = (),
    ) -> None:
        self.engine = engine
        self.store = store
        self.clock = clock
        self.budget_hours = budget_hours
        self.budget = engine.first.scheduler.budget  # outside of those hours
        self.budget_by = ""  # what sets it, if not the settings
        self.pauses = Pauses()
        self.paused_pages: set[str] = set()  # by their own URLs
        self._hours: dict[str, tuple[Hours, set[str]]] = {}  # pages by the text of their hours
        self._open: dict[str, bool] = {}
        self._budgets: dict[str, float] = {}  # by host
        self._next = 0.0  # when to look at the clock again

    def begin(self) -> None:
        """Take over what was paused before a restart."""
        self.pauses = understood(PAUSED, lambda: Pauses.from_text(self.store.get(PAUSED)))
        self.tick(self.clock())

    @property
    def cares(self) -> bool:
        """Whether anything is wanted of whole sites, so that every page that comes in must be told of (`entered`)."""
        return bool(self.engine.first.rules or self.pauses.hosts)

    def entered(self, page: Page) -> None:
        """A page is with the engine now, or something else is said of it."""
        rules = self.engine.first.rules
        page = rules.applied(page)
        if rules.have_budgets and page.host not in self._budgets:
            self._set_budget(page.host, rules.budget(page.host))
        self._leave_hours(page.url)
        if page.hours:
            self._hours.setdefault(page.hours, (hours(page.hours), set()))[1].add(page.url)
        (self.paused_pages.add if page.paused else self.paused_pages.discard)(page.url)
        self._settle(page)

    def left(self, url: str) -> None:
        """A page is not with the engine any more."""
        self.paused_pages.discard(url)
        self._leave_hours(url)

    def paused(self, pauses: Pauses) -> None:
        """Other hosts are paused from now on."""
        changed, self.pauses = self.pauses.hosts ^ pauses.hosts, pauses
        if not changed:
            return
        own = self.paused_pages.union(*(urls for _, urls in self._hours.values()))
        for part in self.engine.parts:
            ruled = {part.names.slot(url): url for url in own if url in part}
            for host in changed:
                hold = host in pauses.hosts
                for slot in part.slots_of_host(host).tolist():
                    if slot in ruled:
                        self._settle(part.page(ruled[slot]))
                    else:
                        self._hold(part, slot, hold)

    def spend(self, budget: float) -> None:
        """Go by another budget from now on, with all else as it is."""
        self.budget, self._next = budget, 0.0
        self._set_rate(budget)

    async def set(self, *, rules: SiteRules, budget: float, budget_hours: BudgetHours) -> None:
        """Other settings hold from now on."""
        self.budget, self.budget_hours = budget, budget_hours
        self._next = 0.0
        self._set_rate(budget)
        self.tick(self.clock())
        if rules.rules == self.engine.first.rules.rules:
            return
        for part in self.engine.parts:
            part.obey(rules, self.clock())
        for host in list(self._budgets):
            self._set_budget(host, rules.budget(host))
        for nth, page in enumerate(self.engine.pages()):
            if page.url in self.engine:
                self.engine.tell(page, self.clock())
                self.entered(page)
            if nth % PIECE == PIECE - 1:
                await asyncio.sleep(0)

    def tick(self, now: float) -> None:
        """Look at the clock, about once a second."""
        if now < self._next:
            return
        self._next = now + 0.5
        if self.budget_hours:
            self._set_rate(next((rate for span, rate in self.budget_hours if span.are_open(now)), self.budget))
        for text, (span, urls) in self._hours.items():
            is_open = span.are_open(now)
            if self._open.get(text) != is_open:
                self._open[text] = is_open
                for url in urls:
                    self._settle(self.engine.page(url))

    def outside_hours(self) -> int:
        """How many pages wait for their hours."""
        return sum(len(urls) for span, urls in self._hours.values() if not span.are_open(self.clock()))

    def budgets(self) -> list[dict[str, object]]:
        """Hosts that have a budget of their own, and what a crawl of them has to gain; then paths, and who waits."""
        engine = self.engine.first
        hosts: list[dict[str, object]] = [
            {
                "host": host,
                "path": "",
                "budget": budget,
                "price": engine.lanes.price(host),
            }
            for host, budget in sorted(self._budgets.items())
        ]
        return [*hosts, *({**each, "price": None} for each in engine.purses.summary(engine.rules.rules))]

    def _set_rate(self, budget: float) -> None:
        scheduler = self.engine.first.scheduler
        if budget != scheduler.budget:
            scheduler.budget = budget

    def _set_budget(self, host: str, budget: float | None) -> None:
        if budget is not None:
            self._budgets[host] = budget
            self.engine.lanes.limit(host, budget)
        elif self._budgets.pop(host, None) is not None:
            self.engine.lanes.limit(host, float("inf"))

    def _leave_hours(self, url: str) -> None:
        for _, urls in self._hours.values():
            urls.discard(url)

    def _settle(self, page: Page) -> None:
        hold = page.paused or page.host in self.pauses.hosts or not self._are_open(page.hours)
        part = self.engine.part_of(page.url)
        self._hold(part, part.names.slot(page.url), hold)

    def _hold(self, part: Engine, slot: int, hold: bool) -> None:
        if hold and not part.is_held(slot):
            part.hold(slot)
        elif not hold and part.is_held(slot):
            part.let_go(slot, self.clock())

    def _are_open(self, text: str) -> bool:
        return not text or self._hours[text][0].are_open(self.clock())
