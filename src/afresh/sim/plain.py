"""The simulation in plain Python: slow, easy to read, and open to policies that are not compiled.

It draws the same random numbers in the same order as the compiled loop, so that both see the very same world; that is
how the compiled one is checked.
"""

from typing import Any, Protocol

import numpy as np

from afresh.schedule.plain import PAGE
from afresh.schedule.plain import Rule as UrgencyRule
from afresh.sim.alias import alias_table
from afresh.sim.world import World


class Policy(Protocol):
    """A schedule of your own. Pages are numbered from 0; time begins at 0, with a fresh copy of every page."""

    def start(self, world: World, budget: float) -> None:
        """Get ready; take from the world what your policy may know."""

    def signal(self, page: int, now: float) -> None:
        """A hint arrived that a page changed."""

    def pick(self, now: float) -> int:
        """The page to crawl at this tick; −1: none."""

    def crawled(self, page: int, now: float, changed: bool) -> None:
        """The page that was picked is fresh again."""


class ByUrgency:
    """A rule of `afresh.schedule` as a policy: the page of the highest urgency, found by looking at all of them."""

    def __init__(self, rule: UrgencyRule) -> None:
        self.rule = rule
        self.pages = np.zeros(0, PAGE)

    def start(self, world: World, budget: float) -> None:
        """The rule may know all rates."""
        self.pages = np.zeros(world.pages, PAGE)
        self.pages["request_rate"] = world.request_rate
        self.pages["change_rate"] = world.change_rate
        self.pages["recall"] = world.recall
        self.pages["false_rate"] = world.false_rate
        self.pages["cost"], self.pages["shape"] = 1.0, np.inf
        for slot in range(world.pages):
            self.rule.added(slot, self.pages[slot], 0.0)

    def signal(self, page: int, now: float) -> None:
        """Counted until the next crawl."""
        self.pages[page]["signals"] += 1

    def pick(self, now: float) -> int:
        """The most urgent; the lower number of equals."""
        urgency = self.rule.urgency(self.pages, now)
        best = int(np.argmax(urgency))
        return best if urgency[best] > 0 else -1

    def crawled(self, page: int, now: float, changed: bool) -> None:
        """Its age starts again."""
        self.rule.crawled(page, self.pages[page], now=now, changed=changed)
        self.pages[page]["current"] = now
        self.pages[page]["signals"] = 0


class _Copies:
    """Which copies are fresh, and for how long they have been in the scored time."""

    def __init__(self, pages: int, score_from: float) -> None:
        self.fresh = [True] * pages
        self.since = [0.0] * pages
        self.fresh_time = np.zeros(pages)
        self.score_from = score_from

    def spoil(self, page: int, now: float) -> None:
        if self.fresh[page]:
            self.fresh[page] = False
            self.fresh_time[page] += max(0.0, now - max(self.since[page], self.score_from))

    def renew(self, page: int, now: float) -> bool:
        changed = not self.fresh[page]
        if changed:
            self.fresh[page], self.since[page] = True, now
        return changed


def simulate_plainly(
    world: World, policy: Policy, *, budget: float, horizon: float, warm_up: float = 0.0, seed: int = 0
) -> float:
    """The accuracy of a policy: `simulate` without its speed, and for signals that arrive at once."""
    if world.signal_delay > 0:
        raise ValueError("the plain simulation knows no delay of signals")
    copies = _Copies(world.pages, warm_up)
    policy.start(world, budget)
    tick = step = 1.0 / budget
    for now, kind, page in _events(world, seed):
        while tick <= min(now, horizon):
            chosen = policy.pick(tick)
            if chosen >= 0:
                policy.crawled(chosen, tick, copies.renew(chosen, tick))
            tick += step
        if now > horizon:
            break
        if kind != "false signal":
            copies.spoil(page, now)
        if kind != "silent change":
            policy.signal(page, now)
    for page in range(world.pages):
        copies.spoil(page, horizon)
    share = copies.fresh_time / (horizon - warm_up)
    return float(world.request_rate @ share / world.request_rate.sum())


def _events(world: World, seed: int) -> Any:
    """(time, kind, page) without end, in the order of time."""
    heard = world.recall * world.change_rate
    weights = np.concatenate([world.change_rate - heard, heard, world.false_rate])
    total = float(weights.sum())
    keep, other = alias_table(weights)
    rng = np.random.default_rng([seed, 0x5EED])
    now = rng.standard_exponential() / total
    while True:
        u = rng.random() * len(keep)
        cell = int(u)
        if u - cell >= keep[cell]:
            cell = int(other[cell])
        kind, page = divmod(cell, world.pages)
        yield now, ("silent change", "signalled change", "false signal")[kind], page
        now += rng.standard_exponential() / total
